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

/** An account at an ad service: its URL and our key there. The key is a secret: it is never logged and never in a job. */
export interface ProviderAccount {
  readonly url: string;
  readonly apiKey: string;
  readonly apiKeyHeader: string;
}

/** A customer of the relay, and the provider account that its ads come from. */
export interface Publisher {
  readonly id: PublisherId;
  readonly name: string;
  /** SHA-256 digests of the API keys of this publisher. */
  readonly keyDigests: readonly Buffer[];
  readonly account: ProviderAccount;
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
    readonly apiKeyHeader: string;
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
          })
          .optional(),
      }),
    )
    .min(1),
});
type FileEntry = z.infer<typeof fileSchema>["publishers"][number];

/** Loads the publishers from the file, or the publisher `default` if there is no file. All faults are reported together. */
export function loadPublishers(sources: PublisherSources): PublishersResult {
  return sources.file === undefined ? defaultPublisher(sources) : fromFile(sources.file, sources);
}

/** A provider account and the publishers that share it. They also share its circuit breaker. */
export interface SharedAccount {
  /** A digest of URL and key: all processes that have both call the account by it. The key can't be found from it. */
  readonly id: string;
  /** For operators: the alphabetically first id of its publishers. */
  readonly name: string;
  readonly account: ProviderAccount;
  readonly publishers: readonly PublisherId[];
}

/** Enough for no two accounts to meet, and too few to find a key by. */
const ID_BYTES = 8;

/** The provider accounts of these publishers. Processes with the same publishers get the same accounts. */
export function listAccounts(publishers: readonly Publisher[]): SharedAccount[] {
  const accounts = new Map<string, { account: ProviderAccount; publishers: PublisherId[] }>();
  for (const { id, account } of publishers) {
    const key = JSON.stringify([account.url, account.apiKeyHeader, account.apiKey]);
    const shared = accounts.get(key) ?? { account, publishers: [] };
    shared.publishers.push(id);
    accounts.set(key, shared);
  }
  return [...accounts].map(([key, { account, publishers: ids }]) => {
    const sorted = ids.toSorted();
    return {
      id: digestKey(key).toString("hex", 0, ID_BYTES),
      name: sorted[0] ?? "",
      account,
      publishers: sorted,
    };
  });
}

/** The SHA-256 digest of a key. It is made from hex, because a buffer from the hash function costs twice as much. */
export function digestKey(key: string): Buffer {
  return Buffer.from(hash("sha256", key, "hex"), "hex");
}

function defaultPublisher({ apiKeys, provider }: PublisherSources): PublishersResult {
  const { url, apiKey, apiKeyHeader } = provider;
  if (apiKey === undefined) {
    return faulty("PROVIDER_API_KEY", "is not set");
  }
  const account = { url, apiKey, apiKeyHeader };
  const publisher = { id: DEFAULT_PUBLISHER, name: "default", keyDigests: apiKeys.map(digestKey), account };
  return { kind: "ok", publishers: [publisher] };
}

function fromFile(file: string, sources: PublisherSources): PublishersResult {
  const document = readDocument(file);
  if (document.kind === "unreadable") {
    return faulty("PUBLISHERS_FILE", document.why);
  }
  const parsed = fileSchema.safeParse(document.value);
  if (!parsed.success) {
    const faults = faultsOf(parsed.error);
    return {
      kind: "faulty",
      faults: faults.map(({ path, message }) => ({ path: `PUBLISHERS_FILE ${path}`, message })),
    };
  }
  const entries = parsed.data.publishers;
  const accounts = entries.map((entry) => resolveAccount(entry, sources));
  const faults = [
    ...accounts.flatMap((account) => ("path" in account ? [account] : [])),
    ...repeatedEntries(entries),
  ];
  const publishers = entries.flatMap((entry, at) => {
    const account = accounts[at];
    return account === undefined || "path" in account ? [] : [toPublisher(entry, account)];
  });
  return faults.length > 0 ? { kind: "faulty", faults } : { kind: "ok", publishers };
}

function toPublisher({ id, name, key_sha256 }: FileEntry, account: ProviderAccount): Publisher {
  return { id, name, keyDigests: key_sha256.map((hex) => Buffer.from(hex, "hex")), account };
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

/** Finds the provider account of an entry, with its key from the environment. A fault if that variable is not set. */
function resolveAccount(
  { id, provider }: FileEntry,
  sources: PublisherSources,
): ProviderAccount | FieldFault {
  const shared = sources.provider;
  if (provider === undefined) {
    return shared.apiKey === undefined
      ? {
          path: `PUBLISHERS_FILE ${id}`,
          message: "names no provider, and PROVIDER_API_KEY is not set",
        }
      : { url: shared.url, apiKey: shared.apiKey, apiKeyHeader: shared.apiKeyHeader };
  }
  const apiKey = sources.env(provider.api_key_env);
  if (apiKey === undefined || apiKey === "") {
    const message = `the variable of its provider's key, ${provider.api_key_env}, is not set`;
    return { path: `PUBLISHERS_FILE ${id}`, message };
  }
  const [fault] = headerKeySchema.safeParse(apiKey).error?.issues ?? [];
  return fault !== undefined
    ? { path: provider.api_key_env, message: fault.message }
    : { url: provider.url, apiKey, apiKeyHeader: provider.api_key_header };
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
