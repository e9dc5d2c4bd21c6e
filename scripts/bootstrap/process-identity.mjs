/** Which process a pid means: after its end another process may get the same pid. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** @typedef {{ pid: number, startedAt: string | null }} ProcessIdentity */

/** @param {number} pid @returns {ProcessIdentity} */
export function identify(pid) {
  return { pid, startedAt: startOf(pid) };
}

/**
 * Whether this very process still runs, beside the one that asks. An identity with the asker's own pid is of an earlier
 * process: in a container each start may get the same pid.
 * @param {ProcessIdentity} identity
 */
export function isSameAndAlive({ pid, startedAt }) {
  return pid !== process.pid && isAlive(pid) && startOf(pid) === startedAt;
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/**
 * The start time, only for comparison: ticks since boot from /proc, otherwise the date that ps prints. Null if neither
 * is available.
 * @param {number} pid
 */
function startOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in parentheses may contain spaces. The start time is the 20th field after it.
    const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" ? "ended" : (fields[18] ?? null);
  } catch {
    const asked = spawnSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" });
    return asked.stdout?.trim() || null;
  }
}
