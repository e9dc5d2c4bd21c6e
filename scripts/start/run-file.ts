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

/** What `.adrelay/run.json` tells other programs of the running stack. */
export interface RunFile {
  readonly gateway: string;
  readonly gatewayOps: string;
  readonly workerOps: string;
  readonly adServer: string;
  readonly redis: string;
  readonly apiKey: string;
  readonly adminToken: string;
  readonly pids: Readonly<Record<string, number>>;
}

/** Written aside and moved into place: readers never see half of it. */
export function writeRunFile(file: string, run: RunFile): void {
  const draft = `${file}.new`;
  writeFileSync(draft, `${JSON.stringify(run, null, 2)}\n`, { mode: 0o600 });
  renameSync(draft, file);
}

/** Takes the lock of this folder, or tells the process that holds it. A lock of a dead process is taken over. */
export function takeLock(
  file: string,
): { readonly kind: "taken" } | { readonly kind: "held"; readonly pid: number } {
  mkdirSync(dirname(file), { recursive: true });
  for (;;) {
    try {
      const handle = openSync(file, "wx");
      writeSync(handle, String(process.pid));
      closeSync(handle);
      return { kind: "taken" };
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

/** Whether a process runs that is one of ours: a number can have passed on to another program. */
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

/** The words a process was started with; undefined where the system has no /proc. */
function commandLineOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return undefined;
  }
}
