/** The thread that reads a catalogue file: see read-catalog.ts. */
import { parentPort, workerData } from "node:worker_threads";
import { loadCatalog } from "./load-catalog.ts";
import type { ReaderMessage } from "./read-catalog.ts";

const PORTION_ADS = 500;

const say = (message: ReaderMessage) => parentPort?.postMessage(message);

const result = loadCatalog(String(workerData));
if (result.kind === "faulty") {
  say(result);
} else {
  for (let from = 0; from < result.ads.length; from += PORTION_ADS) {
    say({ kind: "ads", ads: result.ads.slice(from, from + PORTION_ADS) });
  }
  say({ kind: "end" });
}
