/** Keeps the publishers of a process as their files are: the publishers' file, and files with keys and certificates. */
import type { PublisherDirectory, PublishersDiff } from "@adrelay/provider";
import { describeFault, faultFields, listFields } from "@adrelay/service-kit";
import type { Registry } from "prom-client";
import { FileWatch, type WatchedFiles } from "../process/file-watch.ts";
import { type PublishersFileState, reportPublishers } from "./publishers-metrics.ts";

/** Writes a log line: its fields, with the name of the event. */
type WriteLine = (fields: Readonly<Record<string, unknown>>) => void;

export interface PublishersWatchDeps {
  readonly directory: PublisherDirectory;
  readonly registry: Registry;
  readonly log: { readonly info: WriteLine; readonly error: WriteLine };
}

export class PublishersWatch {
  readonly #deps: PublishersWatchDeps;
  readonly #files: FileWatch;

  constructor(deps: PublishersWatchDeps) {
    const { directory, registry } = deps;
    this.#deps = deps;
    this.#files = new FileWatch({ found: () => directory.found, reload: () => this.#reload() });
    reportPublishers(registry, { directory, stateOf: () => this.state });
  }

  get state(): PublishersFileState {
    const { isValid, loadedAtMs } = this.#files;
    return { digest: this.#deps.directory.fileDigest, isValid, loadedAtMs };
  }

  /** Looks at the files. To be called again and again. */
  look(): Promise<void> {
    return this.#files.look();
  }

  /** Reads the files now, whether they changed or not. */
  onHangUp(): void {
    if (!this.#files.onHangUp()) {
      this.#deps.log.info({ event: "nothing_to_reload" });
    }
  }

  #reload(): ReturnType<WatchedFiles["reload"]> {
    const { directory, log } = this.#deps;
    const result = directory.reload();
    const { fileDigest: digest } = directory;
    switch (result.kind) {
      case "faulty":
        log.error({ event: "publishers_refused", ...faultFields(result.faults, describeFault) });
        break;
      case "unchanged":
        log.info({ event: "publishers_unchanged", digest });
        break;
      case "reloaded":
        log.info({
          event: "publishers_reloaded",
          digest,
          publishers: directory.current.length,
          ...describeDiff(result.diff),
        });
        break;
      default:
        result satisfies never;
    }
    return result.kind;
  }
}

function describeDiff(diff: PublishersDiff): Record<string, unknown> {
  return listFields({
    added: diff.added,
    removed: diff.removed,
    changed: diff.changed,
    keys_added: diff.keysAdded,
    keys_removed: diff.keysRemoved,
    keys_changed: diff.keysChanged,
  });
}
