/** Lock files: only one process of a checkout installs at a time, and only one runs the local stack of a folder. */
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { identify, isSameAndAlive } from "./process-identity.mjs";
import { BootstrapError } from "./run-process.mjs";

/** @typedef {import("./process-identity.mjs").ProcessIdentity} ProcessIdentity */
/** @typedef {{ owner?: ProcessIdentity, tool?: ProcessIdentity | undefined }} LockContent */
/**
 * The pid of the process that holds a lock; undefined while that one writes the lock.
 * @typedef {{ pid: number | undefined }} Holder
 */
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
  for (;;) {
    const holder = takeLock(file);
    if (holder === undefined) {
      return;
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

/**
 * Takes a lock without waiting. The lock of a dead process is replaced. Returns who holds it; undefined if this process does
 * now, until it removes the file.
 * @param {string} file
 * @returns {Holder | undefined}
 */
export function takeLock(file) {
  mkdirSync(dirname(file), { recursive: true });
  while (!tryCreate(file)) {
    const holder = livingHolder(file);
    if (holder !== undefined) {
      return holder;
    }
    removeStale(file);
  }
  return undefined;
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
 * Who holds the lock. Undefined for a stale lock.
 * @param {string} file
 * @returns {Holder | undefined}
 */
function livingHolder(file) {
  const { owner, tool } = read(file);
  if (owner === undefined) {
    return isFresh(file) ? { pid: undefined } : undefined;
  }
  return [owner, tool].find((holder) => holder !== undefined && isSameAndAlive(holder));
}

/**
 * Moves the lock aside first: if several processes see it stale, only one may remove it, and never a new lock.
 * @param {string} file
 */
function removeStale(file) {
  const aside = `${file}.stale-${process.pid}`;
  try {
    renameSync(file, aside);
  } catch (error) {
    if (codeOf(error) === "ENOENT") {
      return;
    }
    throw error;
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
    const content = JSON.parse(readFileSync(file, "utf8"));
    // Older versions wrote only a pid, which says nothing: it repeats.
    return typeof content === "object" && content !== null ? content : {};
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

/** @param {unknown} error */
function codeOf(error) {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
