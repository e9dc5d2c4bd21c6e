import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { BootstrapError } from "./bootstrap-error.mjs";
import { identify, isSame } from "./process-identity.mjs";

const POLL_MS = 200;
const WAIT_MAX_MS = 15 * 60_000;
/** A lock without readable content is being written just now, unless it is older than this. */
const WRITING_MAX_MS = 5000;

/**
 * Runs `work` while no other process of this checkout does. The lock is held by this process and by the tool
 * that it runs at the moment: an npm or pnpm that outlives a killed start still writes. One whose holders are
 * all dead is taken over.
 */
export async function withLock(file, say, work) {
  mkdirSync(dirname(file), { recursive: true });
  await take(file, say);
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

async function take(file, say) {
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

function tryCreate(file) {
  try {
    writeFileSync(file, JSON.stringify({ owner: identify(process.pid) }), { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code === "EEXIST") {
      return false;
    }
    throw error;
  }
}

function replace(file, content) {
  const draft = `${file}.new`;
  writeFileSync(draft, JSON.stringify(content));
  renameSync(draft, file);
}

/** Who holds it: a process; one not yet known, while the lock is being written; nobody, if it is stale. */
function livingHolder(file) {
  const { owner, tool } = read(file);
  if (owner === undefined) {
    return isFresh(file) ? { pid: undefined } : undefined;
  }
  return [owner, tool].find((holder) => holder !== undefined && isSame(holder));
}

/** Moved aside first: of several that see it stale, only one may remove it, and never one taken meanwhile. */
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

function read(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return {};
  }
}

function isFresh(file) {
  try {
    return Date.now() - statSync(file).mtimeMs < WRITING_MAX_MS;
  } catch {
    return false;
  }
}
