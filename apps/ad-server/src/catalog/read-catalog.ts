import { Worker } from "node:worker_threads";
import type { FieldFault } from "@adrelay/contract";
import type { Ad } from "./ad.ts";
import type { CatalogResult } from "./load-catalog.ts";

/** What the thread says: ads in portions, so that taking them over never holds up the loop for long. */
export type ReaderMessage =
  | { readonly kind: "ads"; readonly ads: readonly Ad[] }
  | { readonly kind: "end" }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

const READ_TIMEOUT_MS = 60_000;
const READER_HEAP_MB = 1024;

/** Reads and checks a catalogue file on a thread of its own: a long one takes seconds. It never rejects. */
export function readCatalog(file: string): Promise<CatalogResult> {
  const worker = new Worker(new URL("./catalog-reader.ts", import.meta.url), {
    workerData: file,
    resourceLimits: { maxOldGenerationSizeMb: READER_HEAP_MB },
  });
  return new Promise((resolve) => {
    const ads: Ad[] = [];
    const settle = (result: CatalogResult) => {
      clearTimeout(timer);
      resolve(result);
      void worker.terminate();
    };
    const fail = (message: string) => settle({ kind: "faulty", faults: [{ path: "CATALOG_FILE", message }] });
    const timer = setTimeout(() => fail("took too long to read"), READ_TIMEOUT_MS);
    worker.on("message", (message: ReaderMessage) => {
      switch (message.kind) {
        case "ads":
          ads.push(...message.ads);
          return;
        case "end":
          settle({ kind: "ok", ads });
          return;
        case "faulty":
          settle(message);
          return;
        default:
          message satisfies never;
      }
    });
    worker.on("error", (error: unknown) => fail(error instanceof Error ? error.message : "can't be read"));
    worker.on("exit", () => fail("can't be read: the reader ended"));
  });
}
