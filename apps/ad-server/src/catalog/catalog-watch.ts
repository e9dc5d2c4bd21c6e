import { setImmediate as turn } from "node:timers/promises";
import { faultFields, listedOf, listFields, Periodic } from "@adrelay/service-kit";
import type { Logger } from "pino";
import type { Ad } from "./ad.ts";
import type { CatalogFault } from "./catalog-places.ts";
import type { CurrentCatalog, ReloadOutcome } from "./current-catalog.ts";
import { stateOf } from "./file-state.ts";
import type { CatalogResult } from "./load-catalog.ts";

interface CatalogWatchDeps {
  readonly file: string;
  /** The file's state before it was read for the ads that are in force. */
  readonly readState: string;
  readonly intervalMs: number;
  readonly current: CurrentCatalog;
  readonly log: Logger;
  read(file: string): Promise<CatalogResult>;
  onOutcome(outcome: ReloadOutcome): void;
}

const MESSAGE_CHARS_MAX = 300;

/**
 * Puts a changed catalogue file in force while the server runs. It polls the file's state, since notifications of the
 * file system get lost when editors rename files and containers mount them.
 *
 * 1. A changed file is read only after two checks found it in the same state. So a file that is still being written
 *    isn't read. A change during the start counts, too.
 * 2. A file with a fault is refused as a whole and the old catalogue stays in force. All faults are logged, once.
 * 3. There is one reload at a time.
 * 4. After a failure that may pass, such as an error of the disk, each check reads the file again, until it succeeds or
 *    fails in another way. The failure is logged once.
 */
export class CatalogWatch {
  readonly #deps: CatalogWatchDeps;
  readonly #polling: Periodic;
  /** The file's state at the last read, and at the last check. */
  #readState: string;
  #seenState = "";
  /** Whether the last read failed in a way that may pass. */
  #mayPass = false;
  #reloading: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(deps: CatalogWatchDeps) {
    this.#deps = deps;
    this.#readState = deps.readState;
    this.#polling = new Periodic(
      () => this.#check(),
      deps.intervalMs,
      (err) => deps.log.warn({ event: "catalog_watch_failed", err }),
    );
  }

  /** Watches a file whose ads are in force already. */
  start(): void {
    if (!this.#isStopped) {
      this.#polling.start();
    }
  }

  /** Resolves once the current reload has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#polling.stop();
    await this.#reloading;
  }

  /** Reads the file now, whether it changed or not. */
  onHangUp(): void {
    if (!this.#isStopped) {
      void this.#reload();
    }
  }

  #reload({ isRetry } = { isRetry: false }): Promise<void> {
    this.#reloading = this.#reloading.then(async () => {
      this.#readState = await stateOf(this.#deps.file);
      await this.#replace(isRetry).catch((err) =>
        this.#deps.log.warn({ event: "catalog_watch_failed", err }),
      );
    });
    return this.#reloading;
  }

  async #check(): Promise<void> {
    const state = await stateOf(this.#deps.file);
    const isSettled = state === this.#seenState;
    this.#seenState = state;
    const isChanged = state !== this.#readState;
    if (isSettled && (isChanged || this.#mayPass)) {
      await this.#reload({ isRetry: !isChanged });
    }
  }

  async #replace(isRetry: boolean): Promise<void> {
    const { current, file, read, onOutcome } = this.#deps;
    const result = await read(file);
    this.#mayPass = result.kind === "faulty" && result.mayPass === true;
    if (result.kind === "faulty") {
      if (!(isRetry && this.#mayPass)) {
        this.#logRefusal(result.faults);
        onOutcome("refused");
      }
      return;
    }
    const diff = await diffCatalogs(current.now.ads, result.ads);
    if (isNothing(diff)) {
      onOutcome("unchanged");
      return;
    }
    await current.replace(result.ads);
    this.#logDiff(diff, result.ads.length);
    onOutcome("reloaded");
  }

  #logRefusal(faults: readonly CatalogFault[]): void {
    this.#deps.log.error({
      event: "catalog_refused",
      file: this.#deps.file,
      ...faultFields(faults, (fault) => ({ ...fault, message: fault.message.slice(0, MESSAGE_CHARS_MAX) })),
    });
  }

  #logDiff({ added, removed, changed }: CatalogDiff, ads: number): void {
    this.#deps.log.info({
      event: "catalog_reloaded",
      file: this.#deps.file,
      ads,
      ...listFields({ added, removed }),
      changed_count: changed.length,
      changed: Object.fromEntries(listedOf(changed).map(({ id, fields }) => [id, fields])),
    });
  }
}

function isNothing({ added, removed, changed }: CatalogDiff): boolean {
  return added.length + removed.length + changed.length === 0;
}

/** The differences between two catalogues, by ad id. */
interface CatalogDiff {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly { readonly id: string; readonly fields: readonly string[] }[];
}

/** Ads that are compared in one turn of the event loop. */
const TURN_ADS = 500;

/** Compares two catalogues, in several turns of the event loop if they are long. */
export async function diffCatalogs(before: readonly Ad[], after: readonly Ad[]): Promise<CatalogDiff> {
  const left = new Map(before.map((ad) => [ad.id, ad]));
  const added: string[] = [];
  const changed: { id: string; fields: readonly string[] }[] = [];
  for (const [index, ad] of after.entries()) {
    if (index % TURN_ADS === TURN_ADS - 1) {
      await turn();
    }
    const old = left.get(ad.id);
    left.delete(ad.id);
    if (old === undefined) {
      added.push(ad.id);
    } else if (JSON.stringify(old) !== JSON.stringify(ad)) {
      const fields = changedFields(old, ad);
      changed.push(...(fields.length > 0 ? [{ id: ad.id, fields }] : []));
    }
  }
  return { added, removed: [...left.keys()], changed };
}

/** Fields whose values differ. Fields of a group have its name before theirs: `targeting.countries`. */
function changedFields(old: object, ad: object, prefix = ""): string[] {
  const before = new Map<string, unknown>(Object.entries(old));
  const after = new Map<string, unknown>(Object.entries(ad));
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((field) => {
    const [was, is] = [before.get(field), after.get(field)];
    if (JSON.stringify(was) === JSON.stringify(is)) {
      return [];
    }
    return isGroup(was) && isGroup(is) ? changedFields(was, is, `${prefix}${field}.`) : [`${prefix}${field}`];
  });
}

function isGroup(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
