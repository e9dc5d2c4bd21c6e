/** A lock file: only one process of a checkout installs at a time. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { BootstrapError } from "./run-process.mjs";

/**
 * A process by its pid and start time. After its end another process may get the same pid.
 * @typedef {{ pid: number, startedAt: string | null }} ProcessIdentity
 */
/** @typedef {{ owner?: ProcessIdentity, tool?: ProcessIdentity | undefined }} LockContent */
/** @typedef {import("./run-process.mjs").Lock} Lock */

const POLL_MS = 200;
const WAIT_MAX_MS = 15 * 60_000;
/** Another process is just writing a lock that has no readable content, unless the lock is older than this. */
const WRITING_MAX_MS = 5000;

/**
 * Runs `work` while no other process of this checkout does. Two processes hold the lock: this one, and the tool that it
 * runs at the moment, because an npm or pnpm that outlives a killed start still writes. If all holders are dead, the next
 * process takes the lock over.
 * @template T
 * @param {string} file
 * @param {(line: string) => void} say
 * @param {(lock: Lock) => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withLock(file, say, work) {
  mkdirSync(dirname(file), { recursive: true });
  await acquire(file, say);
  /** @type {LockContent} */
  const content = { owner: identify(process.pid), tool: undefined };
  const release = () => rmSync(file, { force: true });
  process.once("exit", release);
  try {
    return await work({
      setTool: (pid) => {
        content.tool = pid === undefined ? undefined : identify(pid);
        replace(file, content);
      },
    });
  } finally {
    process.removeListener("exit", release);
    release();
  }
}

/** @param {string} file @param {(line: string) => void} say */
async function acquire(file, say) {
  const deadlineMs = Date.now() + WAIT_MAX_MS;
  let hasSaid = false;
  while (!tryCreate(file)) {
    const holder = livingHolder(file);
    if (holder === undefined) {
      removeStale(file);
      continue;
    }
    if (!hasSaid && holder.pid !== undefined) {
      hasSaid = true;
      say(`another run is installing (pid ${holder.pid}); waiting for it`);
    }
    if (Date.now() > deadlineMs) {
      throw new BootstrapError(
        `process ${holder.pid} still holds ${file}; end it, then run the command again`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** @param {string} file */
function tryCreate(file) {
  try {
    writeFileSync(file, JSON.stringify({ owner: identify(process.pid) }), { flag: "wx" });
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") {
      return false;
    }
    throw error;
  }
}

/** @param {string} file @param {LockContent} content */
function replace(file, content) {
  const draft = `${file}.new`;
  writeFileSync(draft, JSON.stringify(content));
  renameSync(draft, file);
}

/**
 * Who holds the lock. The pid is undefined while another process writes the lock. Undefined for a stale lock.
 * @param {string} file
 * @returns {{ pid: number | undefined } | undefined}
 */
function livingHolder(file) {
  const { owner, tool } = read(file);
  if (owner === undefined) {
    return isFresh(file) ? { pid: undefined } : undefined;
  }
  return [owner, tool].find((holder) => holder !== undefined && isSame(holder));
}

/**
 * Moves the lock aside first: if several processes see it stale, only one may remove it, and never a new lock.
 * @param {string} file
 */
function removeStale(file) {
  const aside = `${file}.stale-${process.pid}`;
  try {
    renameSync(file, aside);
  } catch {
    return;
  }
  if (livingHolder(aside) !== undefined && read(aside).owner !== undefined) {
    renameSync(aside, file);
  } else {
    rmSync(aside, { force: true });
  }
}

/** @param {string} file @returns {LockContent} */
function read(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return {};
  }
}

/** @param {string} file */
function isFresh(file) {
  try {
    return Date.now() - statSync(file).mtimeMs < WRITING_MAX_MS;
  } catch {
    return false;
  }
}

/** @param {number} pid @returns {ProcessIdentity} */
function identify(pid) {
  return { pid, startedAt: startOf(pid) };
}

/** Whether this very process still runs. @param {ProcessIdentity} identity */
function isSame({ pid, startedAt }) {
  return isAlive(pid) && startOf(pid) === startedAt;
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
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

/** @param {unknown} error */
function codeOf(error) {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
