/** The files of the local stack in its folder: its keys, and the addresses of what runs. */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import type { LocalKeys } from "./app-settings.ts";
import { PartError } from "./part-error.ts";

const keysSchema = z.object({
  apiKey: z.string().optional(),
  providerKey: z.string().optional(),
  adminToken: z.string().optional(),
  sessionHashKey: z.string().optional(),
});

/** Loads the keys, and makes those that are missing. Throws a PartError if the file is faulty. */
export function loadLocalKeys(file: string): LocalKeys {
  const known = readKeys(file);
  const keys = {
    apiKey: known.apiKey ?? newKey("demo"),
    providerKey: known.providerKey ?? newKey("provider"),
    adminToken: known.adminToken ?? newKey("admin"),
    sessionHashKey: known.sessionHashKey ?? newKey("session-hash"),
  };
  const hasAll = Object.keys(keys).every((name) => name in known);
  if (!hasAll) {
    mkdirSync(dirname(file), { recursive: true });
    writeWhole(file, keys);
  }
  return keys;
}

/** A file that is there and can't be used is a fault: with new keys, the data of the old ones would be lost. */
function readKeys(file: string): z.infer<typeof keysSchema> {
  if (!existsSync(file)) {
    return {};
  }
  try {
    return keysSchema.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    throw new PartError(
      `${file} can't be read as the keys of the local stack. Restore it, or remove it: then new keys are made, and callers need the new one.`,
    );
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

export function writeRunFile(file: string, run: RunFile): void {
  writeWhole(file, run);
}

/** Writes a draft and moves it into place, so that nobody reads a partial file. */
function writeWhole(file: string, value: unknown): void {
  const draft = `${file}.new`;
  writeFileSync(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(draft, file);
}
