/**
 * A chat backend that may be killed: `backend.mjs URL KEY DIRECTORY SEED`. It streams answers without a pause, of which many break off at
 * a random point. It prints a line for each ad, and for each text that a consumer was given. A line on standard input ends it.
 */
import process from "node:process";
import { createRelay } from "@adrelay/client";
import { fileOutbox } from "@adrelay/client/node";

const LANES = 32;
const CHUNKS_MAX = 12;
const PAUSE_MS_MAX = 12;
/** While the relay is down there is no ad to wait for: don't spin. */
const NO_AD_PAUSE_MS = 100;
/** @type {readonly ("end" | "leave" | "abort" | "fail")[]} */
const WAYS = ["end", "end", "leave", "abort", "fail"];

class ModelError extends Error {}

const [url = "", apiKey = "", directory = "", seed = "1"] = process.argv.slice(2);
const random = makeRandom(Number(seed));
const relay = createRelay({
  url,
  apiKey,
  outbox: fileOutbox({ directory }),
  timeoutMs: 10_000,
  retry: { firstMs: 200, maxMs: 2000 },
  onEvent: (event) => {
    if (event.kind === "lost" || event.kind === "refused" || event.kind === "outbox_failed") {
      const id = "adResponseId" in event ? event.adResponseId : "";
      print({ kind: "fault", fault: event.kind, id, why: `${event.error.code}: ${event.error.message}` });
    }
  },
});
let isEnding = false;
process.stdin.once("data", () => {
  isEnding = true;
});

await Promise.all(Array.from({ length: LANES }, runLane));
const left = await relay.close({ timeoutMs: 30_000 });
print({ kind: "closed", left, rssBytesMax: process.resourceUsage().maxRSS * 1024 });
process.exit();

async function runLane() {
  while (!isEnding) {
    await answerOne();
  }
}

async function answerOne() {
  const way = WAYS[Math.floor(random() * WAYS.length)] ?? "end";
  const chunkCount = Math.floor(random() * CHUNKS_MAX);
  const breakAt = way === "end" ? Number.POSITIVE_INFINITY : Math.floor(random() * (chunkCount + 1));
  const controller = new AbortController();
  let id = "";
  let text = "";
  const request = { prompt: "Which shoes?", request_context: { session_id: `s-${random()}` } };
  const answer = (
    /** @type {string} */ _prompt,
    /** @type {import("@adrelay/client").Injection} */ injection,
  ) => {
    if (injection.kind === "injected") {
      id = injection.adResponseId;
      print({ kind: "injected", id });
    }
    return generate(chunkCount, way === "fail" ? breakAt : Number.POSITIVE_INFINITY);
  };
  const stream = await relay.withAd(request, answer, { signal: controller.signal });
  try {
    if (way === "leave" && breakAt === 0) {
      await stream.return?.();
    }
    let count = 0;
    for (;;) {
      if (way === "abort" && count === breakAt) {
        // The consumer still reads, but from now on nothing counts.
        controller.abort();
      }
      const { done, value } = await stream.next();
      if (done) {
        break;
      }
      text += controller.signal.aborted ? "" : value;
      count += 1;
      if (way === "leave" && count === breakAt) {
        await stream.return?.();
      }
    }
  } catch (error) {
    if (!(error instanceof ModelError)) {
      throw error;
    }
  }
  if (id === "") {
    await pause(NO_AD_PAUSE_MS);
  } else {
    print({ kind: "shown", id, text });
  }
}

/** @param {number} chunkCount @param {number} failAt */
async function* generate(chunkCount, failAt) {
  for (let at = 0; at < chunkCount || at === failAt; at += 1) {
    await pause(random() * PAUSE_MS_MAX);
    if (at === failAt) {
      throw new ModelError("the model broke off");
    }
    yield `word ${Math.floor(random() * 1e6)} `;
  }
}

/** @param {number} durationMs */
function pause(durationMs) {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}

/** Writes to the pipe at once: what was printed outlives a kill. @param {unknown} line */
function print(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** Numbers from 0 to 1 that a seed decides (mulberry32). @param {number} seed */
function makeRandom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
