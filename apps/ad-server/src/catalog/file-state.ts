/** Tells whether a file has changed. */
import { type BigIntStats, statSync } from "node:fs";
import { stat } from "node:fs/promises";

const ABSENT = "absent";

/** Identifies a state of the file. It also differs if another file takes its place or a link leads to another file. */
export async function stateOf(file: string): Promise<string> {
  try {
    return describeState(await stat(file, { bigint: true }));
  } catch {
    return ABSENT;
  }
}

/** The same for the start of a process, before anything waits for its event loop. */
export function stateAtStart(file: string): string {
  try {
    return describeState(statSync(file, { bigint: true }));
  } catch {
    return ABSENT;
  }
}

/** With ctime: a new file may have the mtime and the size of the old one, if a copy keeps the mtime of its source. */
function describeState({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(":");
}
