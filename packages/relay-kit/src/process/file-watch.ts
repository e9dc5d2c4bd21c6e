/**
 * Keeps what a process has from some files as these are. It compares what is in the files, because notifications of the file
 * system get lost when an editor renames files, a link is turned to another folder, or a container mounts them.
 *
 * 1. A change is taken after two looks found the same. So a file that is still being written isn't taken. SIGHUP takes it
 *    at once.
 * 2. A faulty file, or one that is gone, changes nothing. It is read once for each content, and so reported once.
 */
import { type Finding, isSameFinding, lookAgain } from "@adrelay/provider";
import { Gauge, type Registry } from "prom-client";

/** How often to look at files: with two looks, a change is in force within 1.5 s. */
export const FILES_LOOK_INTERVAL_MS = 750;

/** Files, and what a process has from them. */
export interface WatchedFiles {
  /** What the last reading found in each file. It is empty if there are no files. */
  found(): Finding;
  /** Reads the files, takes what they have if it has no fault, and logs what came of it. */
  reload(): "reloaded" | "unchanged" | "faulty";
}

export class FileWatch {
  readonly #files: WatchedFiles;
  /** What the last look found, if it differs from what was read. */
  #seen: Finding | undefined;
  #isValid = true;
  #loadedAtMs = Date.now();

  constructor(files: WatchedFiles) {
    this.#files = files;
  }

  /** False while the files are faulty or gone, and what they had before is in force. */
  get isValid(): boolean {
    return this.#isValid;
  }

  /** When what is in force was taken, in milliseconds since 1970. */
  get loadedAtMs(): number {
    return this.#loadedAtMs;
  }

  /** Looks at the files. To be called again and again. */
  async look(): Promise<void> {
    const found = this.#files.found();
    const now = await lookAgain(found.keys());
    const isSettled = this.#seen !== undefined && isSameFinding(now, this.#seen);
    this.#seen = isSameFinding(now, found) ? undefined : now;
    if (isSettled && this.#seen !== undefined) {
      this.#reload();
    }
  }

  /** Reads the files now, whether they changed or not. False if there are none. */
  onHangUp(): boolean {
    const hasFiles = this.#files.found().size > 0;
    if (hasFiles) {
      this.#reload();
    }
    return hasFiles;
  }

  #reload(): void {
    const result = this.#files.reload();
    this.#seen = undefined;
    this.#isValid = result !== "faulty";
    this.#loadedAtMs = result === "reloaded" ? Date.now() : this.#loadedAtMs;
  }
}

/** The texts of the metrics of a watched file. */
export interface FileMetrics {
  /** Begins their names, such as `adrelay_publishers_file`. */
  readonly name: string;
  readonly validHelp: string;
  readonly loadedHelp: string;
}

/** Shows whether the files are in force, and since when. */
export function reportFiles(
  registry: Registry,
  { name, validHelp, loadedHelp }: FileMetrics,
  stateOf: () => Pick<FileWatch, "isValid" | "loadedAtMs">,
): void {
  const registers = [registry];
  new Gauge({
    name: `${name}_valid`,
    help: validHelp,
    registers,
    collect() {
      this.set(stateOf().isValid ? 1 : 0);
    },
  });
  new Gauge({
    name: `${name}_loaded_timestamp_seconds`,
    help: loadedHelp,
    registers,
    collect() {
      this.set(stateOf().loadedAtMs / 1000);
    },
  });
}
