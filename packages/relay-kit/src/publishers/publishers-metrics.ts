import { KEY_STATES, stateOfKey } from "@adrelay/core";
import type { PublisherDirectory } from "@adrelay/provider";
import { Gauge, type Registry } from "prom-client";
import { type FileWatch, reportFiles } from "../process/file-watch.ts";

/** Which publishers' file is in force in a process. */
export interface PublishersFileState extends Pick<FileWatch, "isValid" | "loadedAtMs"> {
  /** The beginning of its SHA-256 digest; undefined without a file. */
  readonly digest: string | undefined;
}

export interface ReportedPublishers {
  readonly directory: Pick<PublisherDirectory, "current">;
  stateOf(): PublishersFileState;
}

const FILE_METRICS = {
  name: "adrelay_publishers_file",
  validHelp:
    "0 while this process' publishers' file, or a file with a key or certificate, is faulty or gone, and what it had before is in force; else 1.",
  loadedHelp: "When this process took the publishers that are in force, in seconds since 1970.",
} as const;

/** Shows which publishers' file is in force, and how many keys are valid. */
export function reportPublishers(registry: Registry, { directory, stateOf }: ReportedPublishers): void {
  const registers = [registry];
  reportFiles(registry, FILE_METRICS, stateOf);
  new Gauge({
    name: "adrelay_publishers_file_digest",
    help: "The first 48 bits of the SHA-256 digest of the publishers' file that is in force, as a number; 0 without a file. Processes with the same file have the same.",
    registers,
    collect() {
      this.set(Number.parseInt(stateOf().digest ?? "0", 16));
    },
  });
  new Gauge({
    name: "adrelay_publisher_keys",
    help: "Callers' keys, by state: valid, expiring (within 14 days), expired.",
    labelNames: ["state"],
    registers,
    collect() {
      const nowMs = Date.now();
      const counts = new Map(KEY_STATES.map((state) => [state, 0]));
      for (const key of directory.current.flatMap(({ keys }) => keys)) {
        const state = stateOfKey(key, nowMs);
        counts.set(state, (counts.get(state) ?? 0) + 1);
      }
      for (const [state, count] of counts) {
        this.set({ state }, count);
      }
    },
  });
}
