/**
 * Installs the dependencies, and remembers in a stamp that they are installed. The stamp `.adrelay/installed` is a hash of
 * everything that decides the content of an installation. It is removed before pnpm runs and written after pnpm
 * succeeded, so it never vouches for a partial installation.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fetchPackage } from "./downloads.mjs";
import { withLock } from "./lock.mjs";
import { BootstrapError, runTool } from "./run-process.mjs";
import { locateNode, locatePnpm, toolFolders } from "./toolchain.mjs";

/** @typedef {import("./run-process.mjs").Lock} Lock */
/** @typedef {import("./toolchain.mjs").LocatedNode} LocatedNode */
/** @typedef {import("./toolchain.mjs").LocatedTool} LocatedTool */
/** @typedef {{ root: string, home: string, say: (line: string) => void }} Place */
/** @typedef {{ root: string, home: string, nodeVersion: string }} Installation */

const LINES_MAX = 12;

/**
 * Fetches the tools and installs the dependencies, unless a quick check finds both in place. Only one process does it at
 * a time; work that another process has done meanwhile is not repeated. Resolves to the Node to use. Rejects with a
 * BootstrapError.
 * @param {Place} place
 * @returns {Promise<LocatedNode>}
 */
export async function prepare(place) {
  const node = locateNode(place.home);
  if (!isPrepared(place, node)) {
    await withLock(join(place.home, "bootstrap.lock"), place.say, (lock) => install({ ...place, lock }));
  }
  return node;
}

/** @param {Place} place @param {LocatedNode} node */
function isPrepared({ root, home }, { missing, version }) {
  return missing.length === 0 && isStampValid({ root, home, nodeVersion: version });
}

/** @param {Place & { lock: Lock }} place */
async function install(place) {
  const node = locateNode(place.home);
  if (isPrepared(place, node)) {
    return;
  }
  const pnpm = locatePnpm(place.home);
  for (const download of [...node.missing, ...pnpm.missing]) {
    await fetchPackage(place, download);
  }
  await installDependencies(place, { node, pnpm });
}

/** @param {Place & { lock: Lock }} place @param {{ node: LocatedNode, pnpm: LocatedTool }} tools */
async function installDependencies({ root, home, say, lock }, { node, pnpm }) {
  const installation = { root, home, nodeVersion: node.version };
  say("installing the dependencies with pnpm");
  clearStamp(installation);
  const PATH = [...toolFolders(home, node), process.env["PATH"]].join(delimiter);
  const args = ["install", "--frozen-lockfile", "--reporter=append-only"];
  const env = { ...pnpmSettings(), ...process.env, PATH };
  const installed = await runTool({ program: pnpm.path, args, cwd: root, env, lock });
  if (!installed.isOk) {
    const lastLines = installed.output.split("\n").slice(-LINES_MAX).join("\n");
    throw new BootstrapError(`pnpm could not install the dependencies; is there a network?\n${lastLines}`);
  }
  writeStamp(installation);
}

/**
 * pnpm asks no questions and gives up within seconds on a broken network; by default it waits for minutes. A registry
 * that npm was given through the environment is passed on to pnpm, which reads other names.
 */
function pnpmSettings() {
  const registry = process.env["npm_config_registry"];
  return {
    pnpm_config_confirm_modules_purge: "false",
    pnpm_config_fetch_retries: "2",
    pnpm_config_fetch_retry_mintimeout: "1000",
    pnpm_config_fetch_retry_maxtimeout: "1000",
    ...(registry && { pnpm_config_registry: registry }),
  };
}

/**
 * Whether the dependencies are installed as the files of the checkout want them now.
 * @param {Installation} installation
 */
export function isStampValid(installation) {
  return readText(stampFile(installation)) === describeInputs(installation) && hasModules(installation.root);
}

/** @param {Installation} installation */
export function clearStamp(installation) {
  rmSync(stampFile(installation), { force: true });
}

/** @param {Installation} installation */
export function writeStamp(installation) {
  const file = stampFile(installation);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.new`, describeInputs(installation));
  renameSync(`${file}.new`, file);
}

/**
 * The platform is part of it, because several packages bring a binary for one platform and two platforms can share a
 * checkout. A missing file counts as an empty one; pnpm reports it.
 * @param {Installation} installation
 */
function describeInputs({ root, nodeVersion }) {
  const hash = createHash("sha256");
  const files = ["pnpm-workspace.yaml", "pnpm-lock.yaml", ".npmrc", ...packageFolders(root).map(manifestOf)];
  for (const file of files) {
    const text = readText(join(root, file));
    hash.update(`${file}\n${text.length}\n${text}\n`);
  }
  return `${hash.digest("hex")} node-${nodeVersion} ${process.platform}-${process.arch}\n`;
}

/** Whether the folders of modules still exist. @param {string} root */
function hasModules(root) {
  return packageFolders(root).every((folder) => {
    const dependencies = readDependencies(join(root, manifestOf(folder)));
    return dependencies?.length === 0 || existsSync(join(root, folder, "node_modules"));
  });
}

/**
 * Undefined if the manifest can't be read, for example in the middle of a merge. pnpm reports it.
 * @param {string} manifest
 */
function readDependencies(manifest) {
  try {
    const { dependencies, devDependencies } = JSON.parse(readText(manifest));
    return Object.keys({ ...dependencies, ...devDependencies });
  } catch {
    return undefined;
  }
}

/**
 * The root and the packages of the workspace, from the plain `- folder/*` lines of pnpm-workspace.yaml.
 * @param {string} root
 */
function packageFolders(root) {
  const lines = readText(join(root, "pnpm-workspace.yaml")).matchAll(
    /^\s*-\s*["']?([\w./-]+)\/\*["']?\s*$/gm,
  );
  const parents = [...lines].map(([, parent = ""]) => parent).sort();
  const folders = parents.flatMap((parent) => {
    const names = existsSync(join(root, parent)) ? readdirSync(join(root, parent)).sort() : [];
    return names.map((name) => join(parent, name));
  });
  return ["", ...folders.filter((folder) => existsSync(join(root, manifestOf(folder))))];
}

/** @param {string} folder */
function manifestOf(folder) {
  return join(folder, "package.json");
}

/** @param {{ home: string }} installation */
function stampFile({ home }) {
  return join(home, "installed");
}

/** @param {string} file */
function readText(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
