/** A Python with the packages of some examples. pip fetches them once for all checkouts of a user, by version and content. */
import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const QUICK_START = fileURLToPath(new URL("requirements.txt", import.meta.url));
const FETCH_TIMEOUT_MS = 120_000;
const run = promisify(execFile);

/** The folder of the packages, for PYTHONPATH, or why the examples can't run. */
export type Python =
  | { readonly kind: "here"; readonly packages: string }
  | { readonly kind: "not_here"; readonly why: string };

export async function providePython(requirements = QUICK_START): Promise<Python> {
  try {
    const { stdout: version } = await run("python3", ["-c", "import sys; print(sys.version_info[:2])"]);
    const hash = createHash("sha256").update(version).update(readFileSync(requirements)).digest("hex");
    const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
    const packages = join(cache, "adrelay", `python-${hash.slice(0, 16)}`);
    if (!existsSync(packages)) {
      await fetchPackages(packages, requirements);
    }
    return { kind: "here", packages };
  } catch (error) {
    return { kind: "not_here", why: `no Python 3.10 with pip and its packages: ${error}` };
  }
}

/** They are moved into place as a whole, so that several runs don't meet. */
async function fetchPackages(packages: string, requirements: string): Promise<void> {
  const work = `${packages}-${randomUUID()}`;
  mkdirSync(work, { recursive: true });
  const flags = [
    "--quiet",
    "--disable-pip-version-check",
    "--no-deps",
    "--require-hashes",
    "--only-binary=:all:",
  ];
  const words = ["-m", "pip", "install", ...flags, "--target", work, "--requirement", requirements];
  try {
    await run("python3", words, { timeout: FETCH_TIMEOUT_MS });
    renameSync(work, packages);
  } catch (error) {
    rmSync(work, { recursive: true, force: true });
    // Another run may have been faster.
    if (!existsSync(packages)) {
      throw error;
    }
  }
}
