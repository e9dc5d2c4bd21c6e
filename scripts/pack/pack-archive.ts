/** Packs what a script puts into an empty folder. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const DEFAULT_FOLDER = fileURLToPath(new URL("../../.adrelay", import.meta.url));

/**
 * Makes an archive for npm, and resolves to its path. Only the archive goes into `folder`: that may be anybody's, so nothing in
 * it is used or deleted.
 *
 * @param fill Puts the files of the package into the folder that it is given.
 */
export async function packArchive(
  folder: string | undefined,
  fill: (contents: string) => Promise<void>,
): Promise<string> {
  const target = resolve(folder ?? DEFAULT_FOLDER);
  mkdirSync(target, { recursive: true });
  const contents = mkdtempSync(join(tmpdir(), "adrelay-pack-"));
  try {
    await fill(contents);
    const words = ["pack", "--silent", "--ignore-scripts", "--pack-destination", target];
    const name = execFileSync("npm", words, { cwd: contents, encoding: "utf8" });
    return join(target, name.trim());
  } finally {
    rmSync(contents, { recursive: true, force: true });
  }
}
