import type { LogOwner } from "./log-format.ts";

/**
 * Whether the owner of a log is gone, so that its log may be taken over. A log with this process' own id may be that of another
 * thread: some runtimes give each thread a start of its own. So it waits for its lease, as if its owner lived.
 */
export function isGone(
  owner: LogOwner,
  self: LogOwner,
  { silentMs, leaseMs }: { readonly silentMs: number; readonly leaseMs: number },
): boolean {
  if (silentMs > leaseMs) {
    return true;
  }
  if (owner.host !== self.host) {
    return false;
  }
  return !isAlive(owner.pid);
}

function isAlive(pid: number): boolean {
  try {
    // Signal 0 is only a question.
    return process.kill(pid, 0);
  } catch (error) {
    return Object(error).code !== "ESRCH";
  }
}
