/** The files of the local stack in its folder: a lock, its keys, and the addresses of what runs. */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
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

export type LockResult = { readonly kind: "acquired" } | { readonly kind: "held"; readonly pid: number };

/** Acquires the lock of this folder, or returns the process that holds it. The lock of a dead process is replaced. */
export function takeLock(file: string): LockResult {
  mkdirSync(dirname(file), { recursive: true });
  for (;;) {
    try {
      const handle = openSync(file, "wx");
      writeSync(handle, String(process.pid));
      closeSync(handle);
      return { kind: "acquired" };
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) {
        throw error;
      }
      const pid = readPid(file);
      if (pid !== undefined && isStart(pid)) {
        return { kind: "held", pid };
      }
      rmSync(file, { force: true });
    }
  }
}

function readPid(file: string): number | undefined {
  try {
    const pid = Number(readFileSync(file, "utf8"));
    return Number.isInteger(pid) && pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the process is an `npm start`. Another program may have got the pid meanwhile. */
function isStart(pid: number): boolean {
  return isAlive(pid) && (commandLineOf(pid)?.includes("start.ts") ?? true);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** The command line of a process; undefined where the system has no /proc. */
function commandLineOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return undefined;
  }
}
