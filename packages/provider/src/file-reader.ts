import { type BinaryLike, hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";

/** What stands for a file that can't be read. No digest looks like it. */
const UNREADABLE = "unreadable";

/** What was found in each file, by its path: a digest. */
export type Finding = ReadonlyMap<string, string>;

/** Reads files and remembers what it found in each, so that a later change can be seen. */
export class FileReader {
  readonly #found = new Map<string, string>();

  /** Reads a file as text. Throws what Node throws. */
  read(path: string): string {
    this.#found.set(path, UNREADABLE);
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
    const digest = await readFile(path).then(digestOf, () => UNREADABLE);
    return [path, digest] as const;
  });
  return new Map(await Promise.all(found));
}

/** Whether the same was found in the same files. */
export function isSameFinding(one: Finding, other: Finding): boolean {
  return one.size === other.size && [...one].every(([path, digest]) => other.get(path) === digest);
}

/** SHA-256, as hex. */
export function digestOf(content: BinaryLike): string {
  return hash("sha256", content, "hex");
}
