import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** A process by number and time of start: the number alone passes on to another once it has ended. */
export function identify(pid) {
  return { pid, startedAt: startOf(pid) };
}

/** Whether that very process still runs. */
export function isSame({ pid, startedAt }) {
  return isAlive(pid) && startOf(pid) === startedAt;
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** Ticks since boot where there is /proc, else ps's date; null if neither tells. Opaque: for comparison alone. */
function startOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name, in parentheses, may hold spaces; the 20th field after it is the start time.
    const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" ? "ended" : (fields[18] ?? null);
  } catch {
    const asked = spawnSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" });
    return asked.stdout?.trim() || null;
  }
}
