/** The publishers and their provider accounts, as the settings and the publishers' file name them. */
import { type FieldFault, headerKeySchema, type PublisherId, publisherIdSchema } from "@adrelay/contract";
import {
  type CallerKey,
  keyOfDigest,
  type ModelRules,
  type OwnQuotas,
  type ProviderEntry,
  type PublisherEntry,
  parsePublishersFile,
  type UnknownAck,
} from "@adrelay/core";
import { isFaulty, makeAccount, type ProviderAccount } from "./accounts.ts";
import { digestOf, FileReader, type Finding, whyUnreadable } from "./file-reader.ts";
import type { TlsFiles } from "./tls-files.ts";

/** A customer of the relay, and the provider account that its ads come from. */
export interface Publisher extends Partial<ModelRules> {
  readonly id: PublisherId;
  readonly name: string;
  /** The keys by which it calls, also expired ones. */
  readonly keys: readonly CallerKey[];
  readonly account: ProviderAccount;
  /** What the file says; see `quotasOf`. */
  readonly quotas?: OwnQuotas | undefined;
  /** Whether acknowledgments of unknown ids are accepted; undefined: as UNKNOWN_ACK says. */
  readonly unknownAck?: UnknownAck | undefined;
}

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
    /** Path of a file that has the key, in place of `apiKey`. */
    readonly apiKeyFile?: string | undefined;
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
  readonly PROVIDER_API_KEY_FILE?: string | undefined;
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
      apiKeyFile: settings.PROVIDER_API_KEY_FILE,
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
export type PublishersResult = {
  /** What was found in each file that was read. */
  readonly found: Finding;
} & (
  | {
      readonly kind: "ok";
      readonly publishers: readonly Publisher[];
      /** The beginning of the SHA-256 digest of the publishers' file; undefined without a file. */
      readonly fileDigest: string | undefined;
    }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] }
);

const DEFAULT_PUBLISHER = publisherIdSchema.parse("default");
/** Enough to tell the files of two processes apart. */
const FILE_DIGEST_DIGITS = 12;

/** Loads the publishers from the file, or the publisher `default` if there is no file. All faults are reported together. */
export function loadPublishers(sources: PublisherSources): PublishersResult {
  const reader = new FileReader();
  const { file } = sources;
  const loaded =
    file === undefined ? defaultPublisher(sources, reader) : fromFile(file, { ...sources, reader });
  return { ...loaded, found: reader.found };
}

type Loaded =
  | {
      readonly kind: "ok";
      readonly publishers: readonly Publisher[];
      readonly fileDigest: string | undefined;
    }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

/** Names of the variables in which PUBLISHERS_FILE expects providers' keys. None if the file is faulty. */
export function keyVariables(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  const file = env["PUBLISHERS_FILE"]?.trim();
  const text = file ? readText(file, new FileReader()) : undefined;
  const parsed = text?.kind === "read" ? parsePublishersFile(text.text) : undefined;
  return parsed?.kind === "ok" ? parsed.entries.flatMap(({ provider }) => provider?.api_key_env ?? []) : [];
}

/** The SHA-256 digest of a key, as hex. */
export function digestKey(key: string): string {
  return digestOf(key);
}

function defaultPublisher(sources: PublisherSources, reader: FileReader): Loaded {
  const { hasKey, made } = sharedAccount(sources, reader);
  const missingKey = hasKey ? [] : [{ path: "PROVIDER_API_KEY", message: "is not set" }];
  if (isFaulty(made) || !hasKey) {
    return { kind: "faulty", faults: [...missingKey, ...(isFaulty(made) ? made : [])] };
  }
  const keys = sources.apiKeys.map((key) => keyOfDigest(digestKey(key)));
  const publishers = [{ id: DEFAULT_PUBLISHER, name: "default", keys, account: made }];
  return { kind: "ok", publishers, fileDigest: undefined };
}

/** The provider account of the settings. */
interface SharedSource {
  /** Without a key there, every publisher must name a provider of its own. */
  readonly hasKey: boolean;
  readonly made: ProviderAccount | readonly FieldFault[];
}

function sharedAccount({ provider }: PublisherSources, reader: FileReader): SharedSource {
  const { apiKey, apiKeyFile, ...rest } = provider;
  const key = readSharedKey({ apiKey, apiKeyFile, reader });
  const made = makeAccount(
    { ...rest, apiKey: key.kind === "read" ? key.apiKey : "" },
    {
      url: "PROVIDER_URL",
      tlsFiles: {
        ca: "PROVIDER_CA_FILE",
        clientCert: "PROVIDER_CLIENT_CERT_FILE",
        clientKey: "PROVIDER_CLIENT_KEY_FILE",
      },
    },
    reader,
  );
  const faults = [...(key.kind === "faulty" ? key.faults : []), ...(isFaulty(made) ? made : [])];
  const hasKey = apiKey !== undefined || apiKeyFile !== undefined;
  return { hasKey, made: faults.length > 0 ? faults : made };
}

function readSharedKey({
  apiKey = "",
  apiKeyFile,
  reader,
}: Pick<PublisherSources["provider"], "apiKey" | "apiKeyFile"> & { readonly reader: FileReader }): KeyResult {
  const path = "PROVIDER_API_KEY_FILE";
  if (apiKeyFile === undefined) {
    return { kind: "read", apiKey };
  }
  return apiKey === ""
    ? readKeyFile(apiKeyFile, { path, reader })
    : faulty(path, "set it or PROVIDER_API_KEY");
}

interface FileSources extends PublisherSources {
  readonly reader: FileReader;
}

function fromFile(file: string, sources: FileSources): Loaded {
  const document = readText(file, sources.reader);
  if (document.kind === "unreadable") {
    return faulty("PUBLISHERS_FILE", `the file ${file} ${document.why}`);
  }
  const parsed = parsePublishersFile(document.text);
  const found = parsed.kind === "faulty" ? parsed.faults : [];
  const shared = sharedAccount(sources, sources.reader);
  const made = parsed.entries.map((entry) => ({ entry, account: accountOf(entry, shared, sources) }));
  const faults = [
    ...found.map(({ path, message }) => ({ path: placeInFile(path), message })),
    ...(isFaulty(shared.made) ? shared.made : []),
    ...made.flatMap(({ account }) => (isFaulty(account) ? account : [])),
  ];
  if (faults.length > 0) {
    return { kind: "faulty", faults };
  }
  const publishers = made.flatMap(({ entry: { provider: _, ...entry }, account }) =>
    isFaulty(account) ? [] : [{ ...entry, account }],
  );
  return { kind: "ok", publishers, fileDigest: sources.reader.found.get(file)?.slice(0, FILE_DIGEST_DIGITS) };
}

function placeInFile(path: string): string {
  return `PUBLISHERS_FILE ${path}`.trim();
}

function readText(
  file: string,
  reader: FileReader,
): { kind: "read"; text: string } | { kind: "unreadable"; why: string } {
  try {
    return { kind: "read", text: reader.read(file) };
  } catch (error) {
    return { kind: "unreadable", why: whyUnreadable(error) };
  }
}

/** The account of a publisher. If it has none of its own, it has the shared one, whose own faults are reported once. */
function accountOf(
  { id, provider }: PublisherEntry,
  { hasKey, made }: SharedSource,
  sources: FileSources,
): ProviderAccount | readonly FieldFault[] {
  if (provider !== undefined) {
    return ownAccount(id, provider, sources);
  }
  if (!hasKey) {
    return [{ path: placeInFile(id), message: "names no provider, and PROVIDER_API_KEY is not set" }];
  }
  return isFaulty(made) ? [] : made;
}

/** The account of a publisher's own provider. */
function ownAccount(
  id: PublisherId,
  provider: ProviderEntry,
  { env, reader }: FileSources,
): ProviderAccount | readonly FieldFault[] {
  const { url, api_key_header, ca_file, client_cert_file, client_key_file } = provider;
  const key = readOwnKey(id, provider, { env, reader });
  if (key.kind === "faulty") {
    return key.faults;
  }
  const nameOf = (member: string) => placeInFile(`${id} ${member}`);
  const tlsFiles = { ca: ca_file, clientCert: client_cert_file, clientKey: client_key_file };
  const names = {
    url: nameOf("url"),
    tlsFiles: {
      ca: nameOf("ca_file"),
      clientCert: nameOf("client_cert_file"),
      clientKey: nameOf("client_key_file"),
    },
  };
  return makeAccount({ url, apiKey: key.apiKey, apiKeyHeader: api_key_header, tlsFiles }, names, reader);
}

type KeyResult =
  | { readonly kind: "read"; readonly apiKey: string }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

function readOwnKey(
  id: PublisherId,
  { api_key_env, api_key_file }: ProviderEntry,
  { env, reader }: Pick<FileSources, "env" | "reader">,
): KeyResult {
  if (api_key_file !== undefined) {
    return readKeyFile(api_key_file, { path: placeInFile(`${id} api_key_file`), reader });
  }
  const name = api_key_env ?? "";
  const apiKey = env(name)?.trim() ?? "";
  return apiKey === ""
    ? faulty(placeInFile(id), `the variable of its provider's key, ${name}, is not set`)
    : checkKey(apiKey, name);
}

/** Blanks and line breaks around the key don't count. */
function readKeyFile(
  file: string,
  { path, reader }: { readonly path: string; readonly reader: FileReader },
): KeyResult {
  const content = readText(file, reader);
  if (content.kind === "unreadable") {
    return faulty(path, `the file that it names ${content.why}`);
  }
  const apiKey = content.text.trim();
  return apiKey === "" ? faulty(path, `the file ${file} is empty`) : checkKey(apiKey, path);
}

function checkKey(apiKey: string, path: string): KeyResult {
  const [fault] = headerKeySchema.safeParse(apiKey).error?.issues ?? [];
  return fault === undefined ? { kind: "read", apiKey } : faulty(path, fault.message);
}

function faulty(path: string, message: string) {
  return { kind: "faulty", faults: [{ path, message }] } as const;
}
