/** The certificates by which a provider and the relay know each other: files in PEM, read and checked. */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContext } from "node:tls";
import type { FieldFault } from "@adrelay/contract";
import { digestOf, type FileReader, whyUnreadable } from "./file-reader.ts";

/** Paths of the files; each may be absent. */
export interface TlsFiles {
  /** Certificates of the authorities that may sign the provider's certificate, in place of Node's own. */
  readonly ca: string | undefined;
  /** Our certificate, followed by those between it and its authority. */
  readonly clientCert: string | undefined;
  /** The private key of our certificate, without passphrase. */
  readonly clientKey: string | undefined;
}

/** Where each file is named, for faults: a setting, or a place in the publishers' file. */
export type TlsFileNames = Readonly<Record<keyof TlsFiles, string>>;

/** The certificates of a provider account, ready for its connections. */
export interface ProviderTls {
  /** The same for the same files, whatever is in them. */
  readonly id: string;
  /** The same for files with the same content. */
  readonly contentDigest: string;
  readonly secureContext: SecureContext;
}

/** The certificates, or everything that is wrong with their files. */
export type TlsResult =
  /** `tls` is undefined if no file is named. */
  | { readonly kind: "ok"; readonly tls: ProviderTls | undefined }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

/** Reads the files. All faults are reported together; each names its file, and never shows its content. */
export function loadTls(files: TlsFiles, names: TlsFileNames, reader: FileReader): TlsResult {
  const parts = {
    ca: readPart(reader, { path: names.ca, file: files.ca, parse: parseCertificates }),
    clientCert: readPart(reader, {
      path: names.clientCert,
      file: files.clientCert,
      parse: parseCertificates,
    }),
    clientKey: readPart(reader, { path: names.clientKey, file: files.clientKey, parse: parseKey }),
  };
  const faults = Object.values(parts).flatMap(({ fault }) => (fault === undefined ? [] : [fault]));
  if (faults.length === 0) {
    faults.push(...pairFaults(files, names, parts.clientCert.content?.[0], parts.clientKey.content));
  }
  if (faults.length > 0) {
    return { kind: "faulty", faults };
  }
  const pems = {
    ...(parts.ca.pem === undefined ? {} : { ca: parts.ca.pem }),
    ...(parts.clientCert.pem === undefined ? {} : { cert: parts.clientCert.pem }),
    ...(parts.clientKey.pem === undefined ? {} : { key: parts.clientKey.pem }),
  };
  if (Object.keys(pems).length === 0) {
    return { kind: "ok", tls: undefined };
  }
  const id = JSON.stringify([files.ca, files.clientCert, files.clientKey]);
  const contentDigest = digestOf(JSON.stringify(pems));
  return { kind: "ok", tls: { id, contentDigest, secureContext: createSecureContext(pems) } };
}

interface Part<T> {
  readonly pem?: string;
  readonly content?: T;
  readonly fault?: FieldFault;
}

interface PartSource<T> {
  /** Where a fault is. */
  readonly path: string;
  readonly file: string | undefined;
  parse(pem: string): T | undefined;
}

function readPart<T>(reader: FileReader, { path, file, parse }: PartSource<T>): Part<T> {
  if (file === undefined) {
    return {};
  }
  let pem: string;
  try {
    pem = reader.read(file);
  } catch (error) {
    return { fault: { path, message: `the file that it names ${whyUnreadable(error)}` } };
  }
  const content = parse(pem);
  return content === undefined
    ? { fault: { path, message: `the file ${file} is not in PEM, or is damaged or encrypted` } }
    : { pem, content };
}

const CERTIFICATE = /-----BEGIN (TRUSTED )?CERTIFICATE-----[^-]*-----END (TRUSTED )?CERTIFICATE-----/g;

/** At least one certificate; undefined if one can't be read. OpenSSL would leave out such a one without a word. */
function parseCertificates(pem: string): readonly X509Certificate[] | undefined {
  try {
    const certificates = (pem.match(CERTIFICATE) ?? []).map((block) => new X509Certificate(block));
    return certificates.length > 0 ? certificates : undefined;
  } catch {
    return undefined;
  }
}

function parseKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

function pairFaults(
  files: TlsFiles,
  names: TlsFileNames,
  certificate: X509Certificate | undefined,
  key: KeyObject | undefined,
): FieldFault[] {
  if ((certificate === undefined) !== (key === undefined)) {
    const path = certificate === undefined ? names.clientCert : names.clientKey;
    return [{ path, message: "is not set: a client certificate and its key need each other" }];
  }
  return certificate === undefined || key === undefined || certificate.checkPrivateKey(key)
    ? []
    : [
        {
          path: names.clientKey,
          message: `the key in ${files.clientKey} doesn't belong to the certificate in ${files.clientCert}`,
        },
      ];
}
