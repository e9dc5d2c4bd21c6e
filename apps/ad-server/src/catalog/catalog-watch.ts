import { stat } from "node:fs/promises";
import type { FieldFault } from "@adrelay/contract";
import { Periodic } from "@adrelay/service-kit";
import type { Logger } from "pino";
import { type CatalogDiff, diffCatalogs } from "./catalog-diff.ts";
import type { CurrentCatalog } from "./current-catalog.ts";
import type { CatalogResult } from "./load-catalog.ts";

/** What became of a look at a catalogue file that differs from the one before. */
export type ReloadOutcome = "reloaded" | "refused" | "unchanged";

export interface CatalogWatchDeps {
  readonly file: string;
  readonly intervalMs: number;
  readonly current: CurrentCatalog;
  readonly log: Logger;
  read(file: string): Promise<CatalogResult>;
  onOutcome(outcome: ReloadOutcome): void;
}

/** A log line tells so many ids and faults by name, and the rest by number. */
const TOLD_MAX = 50;
const MESSAGE_CHARS_MAX = 300;
const ABSENT = "absent";

/**
 * Puts a changed catalogue file in force while the server runs. It looks at the file's state again and again:
 * notices of the file system get lost where editors rename and containers mount.
 *
 * 1. A file counts as changed once two looks find it the same, so that one being written isn't taken for whole.
 * 2. A file with a fault is refused as a whole, all faults told; the old catalogue stays. It is told once.
 * 3. One reload at a time.
 */
export class CatalogWatch {
  readonly #deps: CatalogWatchDeps;
  readonly #looking: Periodic;
  /** State of the file that was last read, and the one that the last look found. */
  #readState = "";
  #seenState = "";
  #reloading: Promise<void> = Promise.resolve();

  private constructor(deps: CatalogWatchDeps, readState: string) {
    this.#deps = deps;
    this.#readState = readState;
    this.#seenState = readState;
    this.#looking = new Periodic(
      () => this.#look(),
      deps.intervalMs,
      (err) => deps.log.warn({ event: "catalog_watch_failed", err }),
    );
  }

  /** Watches a file whose ads are in force already, read since this process began. */
  static async start(deps: CatalogWatchDeps): Promise<CatalogWatch> {
    // One that changed since may have been read before it did.
    const watch = new CatalogWatch(
      deps,
      (await hasChangedSinceStart(deps.file)) ? "" : await stateOf(deps.file),
    );
    watch.#looking.start();
    return watch;
  }

  /** Reads the file now, changed or not. */
  reload(): Promise<void> {
    this.#reloading = this.#reloading.then(async () => {
      this.#readState = await stateOf(this.#deps.file);
      await this.#replace().catch((err) => this.#deps.log.warn({ event: "catalog_watch_failed", err }));
    });
    return this.#reloading;
  }

  async stop(): Promise<void> {
    await this.#looking.stop();
    await this.#reloading;
  }

  async #look(): Promise<void> {
    const state = await stateOf(this.#deps.file);
    const isSettled = state === this.#seenState;
    this.#seenState = state;
    if (isSettled && state !== this.#readState) {
      await this.reload();
    }
  }

  async #replace(): Promise<void> {
    const { current, file, read, onOutcome } = this.#deps;
    const result = await read(file);
    if (result.kind === "faulty") {
      this.#tellRefusal(result.faults);
      onOutcome("refused");
      return;
    }
    const diff = await diffCatalogs(current.now.ads, result.ads);
    if (isNothing(diff)) {
      onOutcome("unchanged");
      return;
    }
    await current.replace(result.ads);
    this.#tellDiff(diff, result.ads.length);
    onOutcome("reloaded");
  }

  #tellRefusal(faults: readonly FieldFault[]): void {
    this.#deps.log.error({
      event: "catalog_refused",
      file: this.#deps.file,
      fault_count: faults.length,
      faults: faults
        .slice(0, TOLD_MAX)
        .map(({ path, message }) => ({ path, message: message.slice(0, MESSAGE_CHARS_MAX) })),
    });
  }

  #tellDiff({ added, removed, changed }: CatalogDiff, ads: number): void {
    this.#deps.log.info({
      event: "catalog_reloaded",
      file: this.#deps.file,
      ads,
      added_count: added.length,
      removed_count: removed.length,
      changed_count: changed.length,
      added: added.slice(0, TOLD_MAX),
      removed: removed.slice(0, TOLD_MAX),
      changed: Object.fromEntries(changed.slice(0, TOLD_MAX).map(({ id, fields }) => [id, fields])),
    });
  }
}

async function hasChangedSinceStart(file: string): Promise<boolean> {
  try {
    return (await stat(file)).mtimeMs >= performance.timeOrigin;
  } catch {
    return true;
  }
}

function isNothing({ added, removed, changed }: CatalogDiff): boolean {
  return added.length + removed.length + changed.length === 0;
}

/** What tells one state of a file from another: also a file put in its place, and a link that leads elsewhere. */
async function stateOf(file: string): Promise<string> {
  try {
    // ctime too: a copy that keeps its source's mtime may have the old one's, and its size.
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(":");
  } catch {
    return ABSENT;
  }
}
