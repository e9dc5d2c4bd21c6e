import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Whether the dependencies are installed. The stamp `.adrelay/installed` is a hash of all that decides what
 * an installation holds: it is removed before pnpm runs and written after it succeeded, so that it never
 * vouches for half of one.
 */

/** A missing file counts as an empty one; pnpm will say what it thinks of that. */
export function isStampValid(where) {
  return readText(stampFile(where)) === describeInputs(where) && hasModules(where.root);
}

export function clearStamp(where) {
  rmSync(stampFile(where), { force: true });
}

export function writeStamp(where) {
  const file = stampFile(where);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.new`, describeInputs(where));
  renameSync(`${file}.new`, file);
}

/** Several packages bring a binary for one platform: the same checkout can be used from two. */
function describeInputs({ root, nodeVersion }) {
  const hash = createHash("sha256");
  const files = ["pnpm-workspace.yaml", "pnpm-lock.yaml", ".npmrc", ...packageFolders(root).map(manifestOf)];
  for (const file of files) {
    const text = readText(join(root, file));
    hash.update(`${file}\n${text.length}\n${text}\n`);
  }
  return `${hash.digest("hex")} node-${nodeVersion} ${process.platform}-${process.arch}\n`;
}

/** Somebody may have removed them since. */
function hasModules(root) {
  return packageFolders(root).every((folder) => {
    const dependencies = readDependencies(join(root, manifestOf(folder)));
    return dependencies?.length === 0 || existsSync(join(root, folder, "node_modules"));
  });
}

/** Undefined if the manifest can't be read, as in the middle of a merge; pnpm will say so. */
function readDependencies(manifest) {
  try {
    const { dependencies, devDependencies } = JSON.parse(readText(manifest));
    return Object.keys({ ...dependencies, ...devDependencies });
  } catch {
    return undefined;
  }
}

/** The root and the workspace's packages, from the plain `- folder/*` lines of pnpm-workspace.yaml. */
function packageFolders(root) {
  const lines = readText(join(root, "pnpm-workspace.yaml")).matchAll(
    /^\s*-\s*["']?([\w./-]+)\/\*["']?\s*$/gm,
  );
  const parents = [...lines].map(([, parent]) => parent).sort();
  const folders = parents.flatMap((parent) => {
    const names = existsSync(join(root, parent)) ? readdirSync(join(root, parent)).sort() : [];
    return names.map((name) => join(parent, name));
  });
  return ["", ...folders.filter((folder) => existsSync(join(root, manifestOf(folder))))];
}

function manifestOf(folder) {
  return join(folder, "package.json");
}

function stampFile({ home }) {
  return join(home, "installed");
}

function readText(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
