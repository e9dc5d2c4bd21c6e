import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { BootstrapError } from "./bootstrap-error.mjs";
import { nodeDownload, PLATFORM, pnpmDownload } from "./downloads.mjs";
import { isAtLeast } from "./versions.mjs";

/** The oldest that the sources run on as they are. */
const NODE_OLDEST = "24.0.0";
const PNPM_OLDEST = "12.4.2";
const PNPM_MAJOR = "12.";

/**
 * The Node to use, and its download if it must be fetched first. Looks at files alone: it is part of every
 * start. Throws a BootstrapError if there is none to be had.
 */
export function locateNode(home) {
  if (isAtLeast(process.version, NODE_OLDEST)) {
    return { path: process.execPath, version: process.versions.node, missing: [] };
  }
  return locateDownload(home, nodeDownload(), `Node ${NODE_OLDEST} or newer`);
}

/** The pnpm to use: one on PATH that fits, or the fetched one. */
export function locatePnpm(home) {
  return pnpmOnPathFits()
    ? { path: "pnpm", missing: [] }
    : locateDownload(home, pnpmDownload(), `pnpm ${PNPM_OLDEST}`);
}

/**
 * Where a download is kept once it is complete. Version and platform are in it: a newer version, or a checkout
 * that another machine shares, finds nothing there and fetches its own.
 */
export function downloadFolder(home, { name, version }) {
  return join(home, "toolchain", PLATFORM, `${name.replace("/", "-")}-${version}`);
}

/** The folders of the tools, to be first on PATH; that of pnpm need not exist. */
export function toolFolders(home, node) {
  const pnpm = pnpmDownload();
  return [dirname(node.path), ...(pnpm === undefined ? [] : [dirname(binaryPath(home, pnpm))])];
}

function locateDownload(home, download, wanted) {
  if (download === undefined) {
    throw new BootstrapError(`npm has no prebuilt one for ${PLATFORM}: install ${wanted}, then try again`);
  }
  const path = binaryPath(home, download);
  return { path, version: download.version, missing: existsSync(path) ? [] : [download] };
}

function binaryPath(home, download) {
  return join(downloadFolder(home, download), download.binary);
}

/**
 * A later major might not read our lockfile. Asked outside the checkout, whose package.json would make some
 * versions fetch another; Corepack's stand-in must not fetch one just to answer.
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
