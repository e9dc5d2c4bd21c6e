/** The thread of loadCatalogOnThread: it reads a catalogue file and sends its ads in chunks. */
import { parentPort, workerData } from "node:worker_threads";
import { loadCatalog, type ThreadMessage } from "./load-catalog.ts";

const CHUNK_ADS = 500;

const send = (message: ThreadMessage) => parentPort?.postMessage(message);

const result = loadCatalog(String(workerData));
if (result.kind === "faulty") {
  send(result);
} else {
  for (let from = 0; from < result.ads.length; from += CHUNK_ADS) {
    send({ kind: "ads", ads: result.ads.slice(from, from + CHUNK_ADS) });
  }
  send({ kind: "end" });
}
