/**
 * Schemathesis, which the fuzzer is. It is installed once for all checkouts of a user, at the versions and hashes of
 * requirements.txt.
 */
import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const REQUIREMENTS = fileURLToPath(new URL("requirements.txt", import.meta.url));
const INSTALL_TIMEOUT_MS = 300_000;

/** The folder with the modules and the program that runs them, or why there is none. */
export type Schemathesis =
  | { readonly kind: "here"; readonly modules: string }
  | { readonly kind: "not_here"; readonly why: string };

/** Installs it if it isn't here yet. It is moved into place as a whole, so that several runs don't meet. */
export async function provideSchemathesis(say: (line: string) => void): Promise<Schemathesis> {
  const hash = createHash("sha256").update(readFileSync(REQUIREMENTS)).digest("hex");
  const cache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "adrelay");
  const modules = join(cache, `schemathesis-${hash.slice(0, 16)}`);
  if (existsSync(modules)) {
    return { kind: "here", modules };
  }
  const work = `${modules}-${randomUUID()}`;
  const removeWork = () => rmSync(work, { recursive: true, force: true });
  // Ctrl-C ends the process while pip runs.
  process.once("exit", removeWork);
  try {
    mkdirSync(cache, { recursive: true });
    say(`installing schemathesis from PyPI into ${cache}`);
    const words = ["--quiet", "--require-hashes", "--no-deps", "--only-binary=:all:", "--target", work];
    await promisify(execFile)("python3", ["-m", "pip", "install", ...words, "-r", REQUIREMENTS], {
      timeout: INSTALL_TIMEOUT_MS,
    });
    renameSync(work, modules);
    return { kind: "here", modules };
  } catch (error) {
    removeWork();
    // Another run may have been faster.
    return existsSync(modules) ? { kind: "here", modules } : { kind: "not_here", why: String(error) };
  } finally {
    process.off("exit", removeWork);
  }
}
