/** Which Node and which pnpm to use: those of the machine if they are new enough, otherwise fetched ones. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname } from "node:path";
import { binaryPath, nodeDownload, PLATFORM, pnpmDownload } from "./downloads.mjs";
import { BootstrapError } from "./run-process.mjs";

/** @typedef {import("./downloads.mjs").Download} Download */
/** @typedef {{ path: string, version: string, missing: readonly Download[] }} LocatedNode */
/** @typedef {{ path: string, missing: readonly Download[] }} LocatedTool */

/** The oldest Node that runs the sources unbuilt and knows all options in NODE_OPTIONS of deploy/Dockerfile. */
export const NODE_OLDEST = "24.6.0";
const PNPM_OLDEST = "12.4.2";
const PNPM_MAJOR = "12.";

/**
 * The Node to use, and its download if it must be fetched first. Every start calls this, so it only reads files.
 * Throws a BootstrapError if no Node is available.
 * @param {string} home
 * @returns {LocatedNode}
 */
export function locateNode(home) {
  if (isAtLeast(process.version, NODE_OLDEST)) {
    return { path: process.execPath, version: process.versions.node, missing: [] };
  }
  return locateDownload(home, nodeDownload(), `Node ${NODE_OLDEST} or newer`);
}

/**
 * The pnpm to use: a fitting one on PATH, otherwise a fetched one.
 * @param {string} home
 * @returns {LocatedTool}
 */
export function locatePnpm(home) {
  return pnpmOnPathFits()
    ? { path: "pnpm", missing: [] }
    : locateDownload(home, pnpmDownload(), `pnpm ${PNPM_OLDEST}`);
}

/**
 * The folders of the tools, to be first on PATH. That of pnpm need not exist.
 * @param {string} home @param {LocatedTool} node
 */
export function toolFolders(home, node) {
  const pnpm = pnpmDownload();
  return [dirname(node.path), ...(pnpm === undefined ? [] : [dirname(binaryPath(home, pnpm))])];
}

/**
 * Whether a version is `oldest` or newer. A pre-release is older than its release. A text that is no version is not new
 * enough.
 * @param {string} version @param {string} oldest
 */
export function isAtLeast(version, oldest) {
  const have = parseVersion(version);
  const want = parseVersion(oldest);
  if (have === undefined || want === undefined) {
    return false;
  }
  for (const [place, number] of have.numbers.entries()) {
    const wanted = want.numbers[place] ?? 0;
    if (number !== wanted) {
      return number > wanted;
    }
  }
  return !have.isPreRelease || want.isPreRelease;
}

/** @param {string} version */
function parseVersion(version) {
  const match = /^v?(\d+)\.(\d+)\.(\d+)(-\S+)?\s*$/.exec(version);
  return match === null
    ? undefined
    : { numbers: match.slice(1, 4).map(Number), isPreRelease: match[4] !== undefined };
}

/** @param {string} home @param {Download | undefined} download @param {string} wanted @returns {LocatedNode} */
function locateDownload(home, download, wanted) {
  if (download === undefined) {
    throw new BootstrapError(`npm has no prebuilt binary for ${PLATFORM}: install ${wanted}, then try again`);
  }
  const path = binaryPath(home, download);
  return { path, version: download.version, missing: existsSync(path) ? [] : [download] };
}

/**
 * A later major version might not read our lock file. pnpm is asked outside the checkout, because the checkout's
 * package.json would make some versions fetch another pnpm. Corepack's stand-in must not fetch one just to answer.
 */
function pnpmOnPathFits() {
  const asked = spawnSync("pnpm", ["--version"], {
    cwd: tmpdir(),
    env: { ...process.env, COREPACK_ENABLE_NETWORK: "0", COREPACK_ENABLE_DOWNLOAD_PROMPT: "0" },
    stdio: ["ignore", "pipe", "ignore"],
    encoding: "utf8",
    timeout: 10_000,
  });
  const version = asked.status === 0 ? asked.stdout : "";
  return version.startsWith(PNPM_MAJOR) && isAtLeast(version, PNPM_OLDEST);
}
