import { type BinaryLike, hash } from "node:crypto";
import { readFileSync, type Stats, statSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";

/** What stands for a file that can't be read. No digest looks like it. */
const UNREADABLE = "unreadable";

/** Larger than any file of ours. Without a limit, a file that was mixed up would fill the memory of every process. */
const FILE_BYTES_MAX = 16 * 1024 * 1024;

/** What was found in each file, by its path: a digest. */
export type Finding = ReadonlyMap<string, string>;

/** Reads files and remembers what it found in each, so that a later change can be seen. */
export class FileReader {
  readonly #found = new Map<string, string>();

  /** Reads a file as text. Throws what Node throws, or an UnfitFileError. */
  read(path: string): string {
    this.#found.set(path, UNREADABLE);
    checkFile(statSync(path));
    const bytes = readFileSync(path);
    this.#found.set(path, digestOf(bytes));
    return bytes.toString("utf8");
  }

  get found(): Finding {
    return this.#found;
  }
}

/** What is in these files now. */
export async function lookAgain(paths: Iterable<string>): Promise<Finding> {
  const found = [...paths].map(async (path) => {
    return [path, await digestOfFile(path).catch(() => UNREADABLE)] as const;
  });
  return new Map(await Promise.all(found));
}

async function digestOfFile(path: string): Promise<string> {
  checkFile(await stat(path));
  return digestOf(await readFile(path));
}

/** What is at a path can't be a file of ours. */
class UnfitFileError extends Error {
  override readonly name = "UnfitFileError";
}

/**
 * Why a file can't be read, without its path: where a file with a secret is to be named, somebody may have written the secret itself.
 */
export function whyUnreadable(error: unknown): string {
  if (error instanceof UnfitFileError) {
    return error.message;
  }
  const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
  return `can't be read${code}`;
}

/** Throws unless it is a plain file of moderate size. To open a pipe that nobody writes to would never end. */
function checkFile(stats: Stats): void {
  if (stats.isFIFO() || stats.isSocket() || stats.size > FILE_BYTES_MAX) {
    const why = stats.size > FILE_BYTES_MAX ? `is larger than ${FILE_BYTES_MAX} bytes` : "is not a file";
    throw new UnfitFileError(why);
  }
}

/** Whether the same was found in the same files. */
export function isSameFinding(one: Finding, other: Finding): boolean {
  return one.size === other.size && [...one].every(([path, digest]) => other.get(path) === digest);
}

/** SHA-256, as hex. */
export function digestOf(content: BinaryLike): string {
  return hash("sha256", content, "hex");
}
