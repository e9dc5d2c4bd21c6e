import { hash } from "node:crypto";
import type { FieldFault, PublisherId } from "@adrelay/contract";
import type { FileReader } from "./file-reader.ts";
import { loadTls, type ProviderTls, type TlsFileNames, type TlsFiles } from "./tls-files.ts";

/** An account at an ad service: its URL and our key there. The key is a secret: it is never logged and never in a job. */
export interface ProviderAccount {
  /** May contain a user and a password, which are secrets too. */
  readonly url: string;
  readonly apiKey: string;
  readonly apiKeyHeader: string;
  /** undefined: Node's own CAs, and no client certificate. */
  readonly tls?: ProviderTls | undefined;
}

/** What an account is made from. */
export interface AccountSource {
  readonly url: string;
  readonly apiKey: string;
  readonly apiKeyHeader: string;
  readonly tlsFiles: TlsFiles;
}

/** Where faults of an account are: names of settings, or places in the publishers' file. */
export interface AccountSourceNames {
  readonly url: string;
  readonly tlsFiles: TlsFileNames;
}

/** Makes an account and reads its certificates; or all that is wrong with it. */
export function makeAccount(
  { url, apiKey, apiKeyHeader, tlsFiles }: AccountSource,
  names: AccountSourceNames,
  reader: FileReader,
): ProviderAccount | readonly FieldFault[] {
  const tls = loadTls(tlsFiles, names.tlsFiles, reader);
  const faults = [
    ...(tls.kind === "faulty" ? tls.faults : []),
    ...(hasUser(url) && apiKeyHeader.toLowerCase() === "authorization"
      ? [{ path: names.url, message: "can't have a user: our API key is in the header Authorization" }]
      : []),
  ];
  return faults.length > 0 || tls.kind === "faulty" ? faults : { url, apiKey, apiKeyHeader, tls: tls.tls };
}

/** Whether `makeAccount` returned faults. */
export function isFaulty(made: ProviderAccount | readonly FieldFault[]): made is readonly FieldFault[] {
  return Array.isArray(made);
}

function hasUser(url: string): boolean {
  const { username, password } = new URL(url);
  return username !== "" || password !== "";
}

/** Enough digits for no two accounts to meet, and too few to find a key by. */
const ID_DIGITS = 16;

/** The id of an account: a digest, the same for accounts that are the same. The key can't be found from it. */
export function accountIdOf({ url, apiKeyHeader, apiKey, tls }: ProviderAccount): string {
  const identity = JSON.stringify([url, apiKeyHeader.toLowerCase(), apiKey, tls?.id ?? null]);
  return hash("sha256", identity, "hex").slice(0, ID_DIGITS);
}

/** A provider account and the publishers that share it. They also share its circuit breaker. */
export interface SharedAccount {
  /** A digest of URL and key: all processes that have both call the account by it. */
  readonly id: string;
  /** For operators: the alphabetically first id of its publishers. */
  readonly name: string;
  readonly account: ProviderAccount;
  readonly publishers: readonly PublisherId[];
}

/** The provider accounts of these publishers. Processes with the same publishers get the same accounts. */
export function listAccounts(
  publishers: readonly { readonly id: PublisherId; readonly account: ProviderAccount }[],
): SharedAccount[] {
  const accounts = new Map<string, { account: ProviderAccount; publishers: PublisherId[] }>();
  // Many publishers have the same account, and a digest takes time.
  const idsOf = new Map<ProviderAccount, string>();
  for (const { id: publisher, account } of publishers) {
    const id = idsOf.get(account) ?? accountIdOf(account);
    idsOf.set(account, id);
    const shared = accounts.get(id) ?? { account, publishers: [] };
    shared.publishers.push(publisher);
    accounts.set(id, shared);
  }
  return [...accounts].map(([id, { account, publishers: ids }]) => {
    const sorted = ids.toSorted();
    return { id, name: sorted[0] ?? "", account, publishers: sorted };
  });
}
