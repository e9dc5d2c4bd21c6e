import type { LogOwner } from "./log-format.ts";

/** Whether the owner of a log is gone, so that its log may be taken over. */
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
  return owner.pid === self.pid ? owner.startedAtMs !== self.startedAtMs : !isAlive(owner.pid);
}

function isAlive(pid: number): boolean {
  try {
    // Signal 0 is only a question.
    return process.kill(pid, 0);
  } catch (error) {
    return Object(error).code !== "ESRCH";
  }
}
