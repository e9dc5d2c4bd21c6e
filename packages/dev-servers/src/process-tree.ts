/** The processes below a process: found and stopped. */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
}

const STOP_TIMEOUT_MS = 5000;
const LOOK_INTERVAL_MS = 50;

/**
 * Stops all descendants of a process, by force after 5 s. It also reaches those that have their own process group, such
 * as the Redis servers of tests.
 */
export async function stopDescendants(root: number): Promise<void> {
  const doomed = new Set(selectDescendants(listProcesses(), root));
  signalAll(doomed, "SIGTERM");
  // A process that a test froze handles the signal only after it continues.
  signalAll(doomed, "SIGCONT");
  const deadlineMs = performance.now() + STOP_TIMEOUT_MS;
  for (;;) {
    const entries = listProcesses();
    const running = entries.filter(({ pid }) => doomed.has(pid)).map(({ pid }) => pid);
    // Processes that were started while the signals were sent.
    const below = [root, ...running].flatMap((one) => selectDescendants(entries, one));
    const fresh = new Set(below.filter((pid) => !doomed.has(pid)));
    signalAll(fresh, "SIGTERM");
    for (const pid of fresh) {
      doomed.add(pid);
    }
    if (running.length + fresh.size === 0) {
      return;
    }
    if (performance.now() > deadlineMs) {
      signalAll(doomed, "SIGKILL");
      return;
    }
    await new Promise((done) => setTimeout(done, LOOK_INTERVAL_MS));
  }
}

/** The descendants of a process, at every depth. */
export function selectDescendants(entries: readonly ProcessEntry[], root: number): readonly number[] {
  const children = entries.filter(({ parent }) => parent === root);
  return children.flatMap(({ pid }) => [pid, ...selectDescendants(entries, pid)]);
}

function signalAll(pids: Iterable<number>, signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // The process has ended meanwhile.
    }
  }
}

/** All running processes, without zombies. */
export function listProcesses(): readonly ProcessEntry[] {
  const pids = process.platform === "linux" ? readdirSync("/proc").filter((name) => /^\d+$/.test(name)) : [];
  return pids.length > 0 ? parseEntries(pids.map(readStat)) : listWithPs();
}

/** The same where there is no /proc. Without the `ps` that lists them, which is our child and in its own list. */
export function listWithPs(): readonly ProcessEntry[] {
  const ps = spawnSync("ps", ["-A", "-o", "pid=,state=,ppid="], { encoding: "utf8" });
  return parseEntries((ps.stdout ?? "").split("\n")).filter(({ pid }) => pid !== ps.pid);
}

function parseEntries(lines: readonly string[]): readonly ProcessEntry[] {
  return lines.flatMap((line) => {
    const [, pid, state, parent] = /^\s*(\d+)\s+([A-Z])\S*\s+(\d+)/.exec(line) ?? [];
    return pid === undefined || state === "Z" ? [] : [{ pid: Number(pid), parent: Number(parent) }];
  });
}

/** A line is `pid (name) state parent ...`. The name may contain anything, so it is removed. */
function readStat(pid: string): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return `${pid} ${stat.slice(stat.lastIndexOf(")") + 2)}`;
  } catch {
    return "";
  }
}
