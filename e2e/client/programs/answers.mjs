/** A chat backend that streams answers. It runs on every JavaScript runtime, so it uses only globals of the web. */
import { createRelay } from "@adrelay/client";

const CHUNKS = ["Try ", "the ", "", "Velmora ", "Drift: ", "\u{1f45f} ", "light", " and ", "quick", "."];
/** The ways in which an answer breaks off. */
const WAYS = /** @type {const} */ (["leave", "cancel", "abort", "fail"]);
const AT_A_TIME = 16;

class ModelError extends Error {}

/**
 * Answers `count` prompts. Each `breakEvery`th answer breaks off: after each number of chunks, in each way. Resolves to the text that each
 * consumer was given, by ad_response_id, and to how many acknowledgments are left.
 * @param {import("@adrelay/client").RelayOptions} options
 * @param {{ count: number, breakEvery: number }} plan
 */
export async function runAnswers(options, { count, breakEvery }) {
  /** @type {string[]} */
  const faults = [];
  const relay = createRelay({
    timeoutMs: 30_000,
    onEvent: (event) => {
      if (["lost", "refused", "not_injected"].includes(event.kind)) {
        faults.push(JSON.stringify(event));
      }
    },
    ...options,
  });
  /** @type {Record<string, string>} */
  const shown = {};
  let next = 0;
  const work = async () => {
    while (next < count) {
      const at = next;
      next += 1;
      const { id, text } = await answerOne(relay, at, breakEvery);
      shown[id] = text;
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  const left = await relay.close({ timeoutMs: 30_000 });
  return { shown, left, faults };
}

/** @param {import("@adrelay/client").Relay} relay @param {number} at @param {number} breakEvery */
async function answerOne(relay, at, breakEvery) {
  const isBroken = at % breakEvery === 0;
  const nth = at / breakEvery;
  const point = isBroken ? nth % (CHUNKS.length + 1) : Number.POSITIVE_INFINITY;
  const way = isBroken ? WAYS[Math.floor(nth / (CHUNKS.length + 1)) % WAYS.length] : undefined;
  const controller = new AbortController();
  let id = "";
  let text = "";
  const request = {
    prompt: "Which running shoes should I buy for my first marathon?",
    request_context: { session_id: `s-${at}`, user_agent: "test", user_ip: "203.0.113.7" },
  };
  const stream = await relay.withAd(
    request,
    (_prompt, injection) => {
      id = injection.kind === "injected" ? injection.adResponseId : "none";
      const chunks = generate(way === "fail" ? point : Number.POSITIVE_INFINITY);
      return way === "cancel" || at % 3 === 1 ? toReadable(chunks) : chunks;
    },
    { signal: controller.signal },
  );
  const reader = readerOf(stream);
  try {
    for (let count = 0; ; count += 1) {
      if (count === point && way === "abort") {
        controller.abort();
        break;
      }
      if (count === point && way !== "fail") {
        await reader.leave();
        break;
      }
      const { done, value } = await reader.next();
      if (done) {
        break;
      }
      text += value;
    }
  } catch (error) {
    if (!(error instanceof ModelError)) {
      throw error;
    }
  }
  return { id, text };
}

/** @param {number} failAt */
async function* generate(failAt) {
  for (let at = 0; at <= CHUNKS.length; at += 1) {
    if (at === failAt) {
      throw new ModelError("the model broke off");
    }
    if (at < CHUNKS.length) {
      yield CHUNKS[at] ?? "";
    }
  }
}

/** @param {AsyncGenerator<string>} chunks @returns {ReadableStream<string>} */
function toReadable(chunks) {
  return new ReadableStream({
    pull: async (controller) => {
      const { done, value } = await chunks.next();
      return done === true ? controller.close() : controller.enqueue(value);
    },
    cancel: async () => {
      await chunks.return(undefined);
    },
  });
}

/** @param {ReadableStream<string> | AsyncIterableIterator<string>} stream */
function readerOf(stream) {
  if ("getReader" in stream) {
    const reader = stream.getReader();
    return { next: () => reader.read(), leave: () => reader.cancel() };
  }
  return { next: () => stream.next(), leave: async () => void (await stream.return?.()) };
}
