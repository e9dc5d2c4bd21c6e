/**
 * Keeps the publishers of a process as their files are: the publishers' file, and files with keys and certificates. It
 * compares what is in the files, because notifications of the file system get lost when an editor renames files, a link
 * is turned to another folder, or a container mounts them.
 *
 * 1. A change is taken after two looks found the same. So a file that is still being written isn't taken. SIGHUP takes it
 *    at once.
 * 2. A faulty file, or one that is gone, changes nothing. All faults are logged, once for each content.
 */
import type { FieldFault } from "@adrelay/contract";
import type { Registry } from "prom-client";
import { type Finding, isSameFinding, lookAgain } from "./file-reader.ts";
import type { PublisherDirectory } from "./publisher-directory.ts";
import type { PublishersDiff } from "./publishers-diff.ts";
import { type PublishersFileState, reportPublishers } from "./publishers-metrics.ts";

/** How often to look at the files: with two looks, a change is in force within 1.5 s. */
export const PUBLISHERS_LOOK_INTERVAL_MS = 750;

/** Writes a log line: its fields, with the name of the event. */
type WriteLine = (fields: Readonly<Record<string, unknown>>) => void;

export interface PublishersWatchDeps {
  readonly directory: PublisherDirectory;
  readonly registry: Registry;
  readonly log: { readonly info: WriteLine; readonly error: WriteLine };
}

/** How many names or faults a log line lists at most. It counts all of them. */
const LISTED_MAX = 50;

export class PublishersWatch {
  readonly #deps: PublishersWatchDeps;
  /** What the last look found, if it differs from what was loaded. */
  #seen: Finding | undefined;
  #isValid = true;
  #loadedAtMs = Date.now();

  constructor(deps: PublishersWatchDeps) {
    this.#deps = deps;
    reportPublishers(deps.registry, { directory: deps.directory, stateOf: () => this.state });
  }

  get state(): PublishersFileState {
    const { fileDigest: digest } = this.#deps.directory;
    return { digest, isValid: this.#isValid, loadedAtMs: this.#loadedAtMs };
  }

  /** Looks at the files. To be called again and again. */
  async look(): Promise<void> {
    const { directory } = this.#deps;
    const found = await lookAgain(directory.found.keys());
    const isSettled = this.#seen !== undefined && isSameFinding(found, this.#seen);
    this.#seen = isSameFinding(found, directory.found) ? undefined : found;
    if (isSettled && this.#seen !== undefined) {
      this.#reload();
    }
  }

  /** Reads the files now, whether they changed or not. */
  onHangUp(): void {
    const { directory, log } = this.#deps;
    if (directory.found.size === 0) {
      log.info({ event: "nothing_to_reload" });
    } else {
      this.#reload();
    }
  }

  #reload(): void {
    const { directory, log } = this.#deps;
    const result = directory.reload();
    this.#seen = undefined;
    this.#isValid = result.kind !== "faulty";
    switch (result.kind) {
      case "faulty":
        log.error({ event: "publishers_refused", ...faultFields(result.faults) });
        return;
      case "unchanged":
        log.info({ event: "publishers_unchanged", digest: directory.fileDigest });
        return;
      case "reloaded":
        this.#loadedAtMs = Date.now();
        log.info({
          event: "publishers_reloaded",
          digest: directory.fileDigest,
          publishers: directory.current.length,
          ...describeDiff(result.diff),
        });
        return;
      default:
        result satisfies never;
    }
  }
}

/** Fields of a log line about a faulty file. */
export function faultFields(faults: readonly FieldFault[]) {
  const listed = faults.slice(0, LISTED_MAX).map(({ path, message }) => `${path}: ${message}`);
  return { fault_count: faults.length, faults: listed };
}

function describeDiff(diff: PublishersDiff): Record<string, unknown> {
  const kinds = {
    added: diff.added,
    removed: diff.removed,
    changed: diff.changed,
    keys_added: diff.keysAdded,
    keys_removed: diff.keysRemoved,
    keys_changed: diff.keysChanged,
  };
  const described = Object.entries(kinds).flatMap(([kind, names]) => [
    [kind, names.slice(0, LISTED_MAX)] as const,
    [`${kind}_count`, names.length] as const,
  ]);
  return Object.fromEntries(described);
}
