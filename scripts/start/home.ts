/** The files of the local stack in its folder: its keys, and the addresses of what runs. */
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** The keys of the local stack. They are kept, because the data belong to them. */
export interface LocalKeys {
  readonly apiKey: string;
  readonly providerKey: string;
  readonly adminToken: string;
  readonly sessionHashKey: string;
}

/** Loads the keys, or makes them the first time. */
export function loadLocalKeys(file: string): LocalKeys {
  const known = readKeys(file);
  const keys = {
    apiKey: known["apiKey"] ?? newKey("demo"),
    providerKey: known["providerKey"] ?? newKey("provider"),
    adminToken: known["adminToken"] ?? newKey("admin"),
    sessionHashKey: known["sessionHashKey"] ?? newKey("session-hash"),
  };
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(keys, null, 2)}\n`, { mode: 0o600 });
  return keys;
}

function readKeys(file: string): Record<string, string> {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
    return Object.fromEntries(
      entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"),
    );
  } catch {
    return {};
  }
}

function newKey(prefix: string): string {
  return `${prefix}-${randomBytes(18).toString("base64url")}`;
}

/** The content of `.adrelay/run.json`, for other programs: the running stack. */
export interface RunFile {
  readonly gateway: string;
  readonly gatewayOps: string;
  readonly workerOps: string;
  readonly proxy: string;
  readonly proxyOps: string;
  /** Undefined if calls go to another ad service: then ours isn't started. */
  readonly adServer: string | undefined;
  readonly adServerOps: string | undefined;
  /** Undefined if all calls go to other models' servers. */
  readonly demoModel: string | undefined;
  readonly redis: string;
  readonly apiKey: string;
  /** Where the key is sent. */
  readonly keyHeaders: { readonly gateway: string; readonly proxy: string };
  readonly adminToken: string;
  readonly pids: Readonly<Record<string, number>>;
}

/** Writes a draft and moves it into place, so that nobody reads a partial file. */
export function writeRunFile(file: string, run: RunFile): void {
  const draft = `${file}.new`;
  writeFileSync(draft, `${JSON.stringify(run, null, 2)}\n`, { mode: 0o600 });
  renameSync(draft, file);
}
