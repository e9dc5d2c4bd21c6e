import { KEY_STATES, stateOfKey } from "@adrelay/core";
import { Gauge, type Registry } from "prom-client";
import type { PublisherDirectory } from "./publisher-directory.ts";

/** Which publishers' file is in force in a process. */
export interface PublishersFileState {
  /** The beginning of its SHA-256 digest; undefined without a file. */
  readonly digest: string | undefined;
  /** False while the files are faulty or gone, and what they had before is in force. */
  readonly isValid: boolean;
  readonly loadedAtMs: number;
}

export interface ReportedPublishers {
  readonly directory: Pick<PublisherDirectory, "current">;
  stateOf(): PublishersFileState;
}

/** Shows which publishers' file is in force, and how many keys are valid. */
export function reportPublishers(registry: Registry, { directory, stateOf }: ReportedPublishers): void {
  const registers = [registry];
  new Gauge({
    name: "adrelay_publishers_file_valid",
    help: "0 while this process' publishers' file, or a file with a key or certificate, is faulty or gone, and what it had before is in force; else 1.",
    registers,
    collect() {
      this.set(stateOf().isValid ? 1 : 0);
    },
  });
  new Gauge({
    name: "adrelay_publishers_file_loaded_timestamp_seconds",
    help: "When this process took the publishers that are in force, in seconds since 1970.",
    registers,
    collect() {
      this.set(stateOf().loadedAtMs / 1000);
    },
  });
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
