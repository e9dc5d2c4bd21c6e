import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  API_KEY_HEADER,
  baseUrlSchema,
  type FieldFault,
  faultsOf,
  headerKeySchema,
  headerNameSchema,
  type PublisherId,
  publisherIdSchema,
} from "@adrelay/contract";
import { LineCounter, parseDocument } from "yaml";
import { z } from "zod";
import { isFaulty, makeAccount, type ProviderAccount } from "./accounts.ts";
import { type GivenQuotas, quotasSchema } from "./quotas.ts";
import type { TlsFiles } from "./tls-files.ts";

/** A customer of the relay, and the provider account that its ads come from. */
export interface Publisher {
  readonly id: PublisherId;
  readonly name: string;
  /** SHA-256 digests of the API keys of this publisher. */
  readonly keyDigests: readonly Buffer[];
  readonly account: ProviderAccount;
  /** What the file says; see `quotasOf`. */
  readonly quotas?: GivenQuotas;
  /** Whether acknowledgments of unknown ids are accepted; undefined: as UNKNOWN_ACK says. */
  readonly unknownAck?: UnknownAck;
}

/** What becomes of acknowledgments of unknown ids. */
export const UNKNOWN_ACK = ["accept", "reject"] as const;
export type UnknownAck = (typeof UNKNOWN_ACK)[number];

/** Where publishers are loaded from. */
export interface PublisherSources {
  /** Path of the YAML file; undefined if there is only the publisher `default`. */
  readonly file: string | undefined;
  /** API keys of the publisher `default`; used only without a file. */
  readonly apiKeys: readonly string[];
  /** The provider account of every publisher that names no provider. */
  readonly provider: {
    readonly url: string;
    readonly apiKey: string | undefined;
    readonly apiKeyHeader: string;
    readonly tlsFiles: TlsFiles;
  };
  /** Reads an environment variable that the file names. */
  readonly env: (name: string) => string | undefined;
}

/** The settings of the gateway and the worker that name providers. */
export interface ProviderSettings {
  readonly PUBLISHERS_FILE?: string | undefined;
  readonly PROVIDER_URL: string;
  readonly PROVIDER_API_KEY?: string | undefined;
  readonly PROVIDER_API_KEY_HEADER: string;
  readonly PROVIDER_CA_FILE?: string | undefined;
  readonly PROVIDER_CLIENT_CERT_FILE?: string | undefined;
  readonly PROVIDER_CLIENT_KEY_FILE?: string | undefined;
}

/** Makes the sources from the settings. The publishers' file names variables of `env`. */
export function publisherSources(
  settings: ProviderSettings,
  apiKeys: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): PublisherSources {
  return {
    file: settings.PUBLISHERS_FILE,
    apiKeys,
    provider: {
      url: settings.PROVIDER_URL,
      apiKey: settings.PROVIDER_API_KEY,
      apiKeyHeader: settings.PROVIDER_API_KEY_HEADER,
      tlsFiles: {
        ca: settings.PROVIDER_CA_FILE,
        clientCert: settings.PROVIDER_CLIENT_CERT_FILE,
        clientKey: settings.PROVIDER_CLIENT_KEY_FILE,
      },
    },
    env: (name) => env[name],
  };
}

/** The publishers, or everything that is wrong with their sources. */
export type PublishersResult =
  | { readonly kind: "ok"; readonly publishers: readonly Publisher[] }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

const DEFAULT_PUBLISHER = publisherIdSchema.parse("default");

const fileSchema = z.strictObject({
  publishers: z
    .array(
      z.strictObject({
        id: publisherIdSchema,
        name: z.string().min(1),
        key_sha256: z.array(z.string().regex(/^[0-9a-f]{64}$/, "must be 64 lower-case hex digits")).min(1),
        provider: z
          .strictObject({
            url: baseUrlSchema,
            // A key that is written here by mistake doesn't match, and is refused without being shown.
            api_key_env: z
              .string()
              .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of an environment variable"),
            api_key_header: headerNameSchema.default(API_KEY_HEADER),
            ca_file: z.string().min(1).optional(),
            client_cert_file: z.string().min(1).optional(),
            client_key_file: z.string().min(1).optional(),
          })
          .optional(),
        unknown_ack: z.enum(UNKNOWN_ACK, "must be accept or reject").optional(),
        quotas: quotasSchema.optional(),
      }),
    )
    .min(1),
});
type FileEntry = z.infer<typeof fileSchema>["publishers"][number];

/** Loads the publishers from the file, or the publisher `default` if there is no file. All faults are reported together. */
export function loadPublishers(sources: PublisherSources): PublishersResult {
  return sources.file === undefined ? defaultPublisher(sources) : fromFile(sources.file, sources);
}

/** Names of the variables in which PUBLISHERS_FILE expects providers' keys. None if the file is faulty. */
export function keyVariables(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  const file = env["PUBLISHERS_FILE"]?.trim();
  const document = file ? readDocument(file) : undefined;
  const parsed = fileSchema.safeParse(document?.kind === "read" ? document.value : undefined);
  return parsed.data?.publishers.flatMap(({ provider }) => provider?.api_key_env ?? []) ?? [];
}

/** The SHA-256 digest of a key. It is made from hex, because a buffer from the hash function costs twice as much. */
export function digestKey(key: string): Buffer {
  return Buffer.from(hash("sha256", key, "hex"), "hex");
}

function defaultPublisher(sources: PublisherSources): PublishersResult {
  const account = sharedAccount(sources);
  const missingKey =
    sources.provider.apiKey === undefined ? [{ path: "PROVIDER_API_KEY", message: "is not set" }] : [];
  if (isFaulty(account) || missingKey.length > 0) {
    return { kind: "faulty", faults: [...missingKey, ...(isFaulty(account) ? account : [])] };
  }
  const keyDigests = sources.apiKeys.map(digestKey);
  return { kind: "ok", publishers: [{ id: DEFAULT_PUBLISHER, name: "default", keyDigests, account }] };
}

/** The provider account of the settings. The caller checks whether there is a key. */
function sharedAccount({ provider }: PublisherSources): ProviderAccount | readonly FieldFault[] {
  const source = { ...provider, apiKey: provider.apiKey ?? "" };
  return makeAccount(source, {
    url: "PROVIDER_URL",
    tlsFiles: {
      ca: "PROVIDER_CA_FILE",
      clientCert: "PROVIDER_CLIENT_CERT_FILE",
      clientKey: "PROVIDER_CLIENT_KEY_FILE",
    },
  });
}

function fromFile(file: string, sources: PublisherSources): PublishersResult {
  const document = readDocument(file);
  if (document.kind === "unreadable") {
    return faulty("PUBLISHERS_FILE", document.why);
  }
  const parsed = fileSchema.safeParse(document.value);
  if (!parsed.success) {
    const faults = faultsOf(parsed.error).map(({ path, message }) => ({
      path: `PUBLISHERS_FILE ${countedFromOne(path)}`.trim(),
      message: inPlainWords(message),
    }));
    return { kind: "faulty", faults };
  }
  const entries = parsed.data.publishers;
  const shared = sharedAccount(sources);
  const accounts = entries.map(({ id, provider }) =>
    provider === undefined ? accountWithoutProvider(id, shared, sources) : ownAccount(id, provider, sources),
  );
  const faults = [
    ...(isFaulty(shared) ? shared : []),
    ...accounts.flatMap((account) => (isFaulty(account) ? account : [])),
    ...repeatedEntries(entries),
  ];
  const publishers = entries.flatMap((entry, at) => {
    const account = accounts[at];
    return account === undefined || isFaulty(account) ? [] : [toPublisher(entry, account)];
  });
  return faults.length > 0 ? { kind: "faulty", faults } : { kind: "ok", publishers };
}

/** `publishers.0.key_sha256.1` is `publishers 1, key_sha256 2` for people. */
function countedFromOne(path: string): string {
  return path.replaceAll(/\.(\d+)/g, (_, index: string) => ` ${Number(index) + 1}`).replaceAll(".", ", ");
}

const KINDS: Readonly<Record<string, string>> = {
  array: "a list",
  string: "a text (in quotes, if it looks like a number)",
  object: "a mapping with members",
};

/** The parser's own words for what is missing, of another kind or unknown. All other messages are ours. */
function inPlainWords(message: string): string {
  const [, expected = "", received] = /^Invalid input: expected (\w+), received (\w+)$/.exec(message) ?? [];
  if (received !== undefined) {
    return received === "undefined" ? "is missing" : `must be ${KINDS[expected] ?? expected}`;
  }
  return message.startsWith("Too small")
    ? "must not be empty"
    : message.replace(/^Unrecognized keys?:/, "has members that are not known:");
}

function toPublisher(entry: FileEntry, account: ProviderAccount): Publisher {
  const { id, name, key_sha256, quotas, unknown_ack } = entry;
  return {
    id,
    name,
    keyDigests: key_sha256.map((hex) => Buffer.from(hex, "hex")),
    account,
    ...(quotas === undefined ? {} : { quotas }),
    ...(unknown_ack === undefined ? {} : { unknownAck: unknown_ack }),
  };
}

function readDocument(file: string): { kind: "read"; value: unknown } | { kind: "unreadable"; why: string } {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    return { kind: "unreadable", why: error instanceof Error ? error.message : "can't be read" };
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [fault] = document.errors;
  if (fault !== undefined) {
    // The parser's message may quote the file, and the file may contain a key.
    return {
      kind: "unreadable",
      why: `is not valid YAML: ${fault.code} in line ${lines.linePos(fault.pos[0]).line}`,
    };
  }
  const value: unknown = document.toJS();
  return { kind: "read", value };
}

/** The shared account, for a publisher that names no provider. The shared account's own faults are reported once. */
function accountWithoutProvider(
  id: PublisherId,
  shared: ProviderAccount | readonly FieldFault[],
  { provider }: PublisherSources,
): ProviderAccount | readonly FieldFault[] {
  if (provider.apiKey === undefined) {
    return [{ path: `PUBLISHERS_FILE ${id}`, message: "names no provider, and PROVIDER_API_KEY is not set" }];
  }
  return isFaulty(shared) ? [] : shared;
}

/** The account of a publisher's own provider, with its key from the environment. */
function ownAccount(
  id: PublisherId,
  provider: NonNullable<FileEntry["provider"]>,
  { env }: PublisherSources,
): ProviderAccount | readonly FieldFault[] {
  const { url, api_key_env, api_key_header, ca_file, client_cert_file, client_key_file } = provider;
  const apiKey = env(api_key_env)?.trim() ?? "";
  if (apiKey === "") {
    const message = `the variable of its provider's key, ${api_key_env}, is not set`;
    return [{ path: `PUBLISHERS_FILE ${id}`, message }];
  }
  const [fault] = headerKeySchema.safeParse(apiKey).error?.issues ?? [];
  if (fault !== undefined) {
    return [{ path: api_key_env, message: fault.message }];
  }
  const nameOf = (member: string) => `PUBLISHERS_FILE ${id} ${member}`;
  const tlsFiles = { ca: ca_file, clientCert: client_cert_file, clientKey: client_key_file };
  const names = {
    url: nameOf("url"),
    tlsFiles: {
      ca: nameOf("ca_file"),
      clientCert: nameOf("client_cert_file"),
      clientKey: nameOf("client_key_file"),
    },
  };
  return makeAccount({ url, apiKey, apiKeyHeader: api_key_header, tlsFiles }, names);
}

/** Finds ids and keys that appear more than once: with them, answers would depend on the order of the file. */
function repeatedEntries(entries: readonly FileEntry[]): FieldFault[] {
  const repeats = (values: readonly string[]) =>
    new Set(values.filter((value, at) => values.indexOf(value) !== at));
  const ids = repeats(entries.map(({ id }) => id));
  const keys = repeats(entries.flatMap(({ key_sha256 }) => key_sha256));
  return [
    ...[...ids].map((id) => ({ path: `PUBLISHERS_FILE ${id}`, message: "appears more than once" })),
    ...[...keys].map((key) => ({
      path: "PUBLISHERS_FILE",
      message: `the key ${key.slice(0, 8)}… appears more than once`,
    })),
  ];
}

function faulty(path: string, message: string): PublishersResult {
  return { kind: "faulty", faults: [{ path, message }] };
}
