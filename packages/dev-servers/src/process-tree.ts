import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
}

const STOP_TIMEOUT_MS = 5000;
const LOOK_INTERVAL_MS = 50;

/**
 * Stops everything below a process, also what has a process group of its own, as the tests' Redis servers
 * have; by force if it takes too long.
 */
export async function stopDescendants(root: number): Promise<void> {
  const doomed = new Set(selectDescendants(listProcesses(), root));
  signalAll(doomed, "SIGTERM");
  // One that a test froze hears of it only once it goes on.
  signalAll(doomed, "SIGCONT");
  const deadlineMs = performance.now() + STOP_TIMEOUT_MS;
  for (;;) {
    const entries = listProcesses();
    const running = entries.filter(({ pid }) => doomed.has(pid)).map(({ pid }) => pid);
    // What was started while the signals were on their way.
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

/** The descendants of a process, of every depth. */
export function selectDescendants(entries: readonly ProcessEntry[], root: number): readonly number[] {
  const children = entries.filter(({ parent }) => parent === root);
  return children.flatMap(({ pid }) => [pid, ...selectDescendants(entries, pid)]);
}

function signalAll(pids: Iterable<number>, signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** All processes that run; those that ended and were not yet collected are none of them. */
export function listProcesses(): readonly ProcessEntry[] {
  const pids = process.platform === "linux" ? readdirSync("/proc").filter((name) => /^\d+$/.test(name)) : [];
  const lines = pids.length > 0 ? pids.map(readStat) : askPs();
  return lines.flatMap((line) => {
    const [, pid, state, parent] = /^\s*(\d+)\s+([A-Z])\S*\s+(\d+)/.exec(line) ?? [];
    return pid === undefined || state === "Z" ? [] : [{ pid: Number(pid), parent: Number(parent) }];
  });
}

/** `pid (name) state parent ...`; the name may hold anything, so it is cut out. */
function readStat(pid: string): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return `${pid} ${stat.slice(stat.lastIndexOf(")") + 2)}`;
  } catch {
    return "";
  }
}

function askPs(): readonly string[] {
  const { stdout } = spawnSync("ps", ["-A", "-o", "pid=,state=,ppid="], { encoding: "utf8" });
  return (stdout ?? "").split("\n");
}
