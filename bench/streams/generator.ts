/**
 * Asks for streams, reads them and times their first bytes. It runs as a separate process, so it shares no event loop with the
 * server that it measures. It keeps the times of every stream, so percentiles are exact.
 */
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import { Agent, type Dispatcher } from "undici";
import { percentile } from "../figures.ts";
import { type StreamPlan, type StreamResult, streamPlanSchema } from "./stream-load.ts";

process.on("message", (message) => {
  void run(streamPlanSchema.parse(message)).then((result) => process.send?.(result));
});
process.on("disconnect", () => process.exit(0));
process.send?.({ kind: "ready" });

const PATH = "/v1/chat/completions";
const LAST_BYTES = Buffer.from("[DONE]");
/** Streams that are open after the timed part may end for so long. Then they are cut, which is no failure. */
const DRAIN_MS = 3000;
const AD_HEADER = "x-adrelay-ad";

/** The times of a stream. */
interface Stream {
  readonly dueAtMs: number;
  firstByteAtMs: number | undefined;
  endedAtMs: number | undefined;
}

/** The streams of a run so far. */
interface Tally {
  readonly streams: Stream[];
  open: number;
  openMax: number;
  failures: number;
  failure: string;
  isOver: boolean;
}

type Send = (dueAtMs: number) => Promise<void>;

async function run(plan: StreamPlan): Promise<StreamResult> {
  const agent = new Agent({ connections: null, headersTimeout: 0, bodyTimeout: 0, allowH2: false });
  const tally: Tally = { streams: [], open: 0, openMax: 0, failures: 0, failure: "", isOver: false };
  const body = bodyOf(plan);
  const send: Send = (dueAtMs) => openStream({ plan, body, agent, tally }, dueAtMs);
  const running = plan.pace.kind === "rate" ? atRate(tally, plan.pace, send) : closed(tally, plan.pace, send);
  await pause(plan.warmupMs);
  tally.openMax = tally.open;
  process.send?.({ kind: "streams_begun" });
  const fromMs = performance.now();
  await pause(plan.durationMs);
  const toMs = performance.now();
  const { openMax } = tally;
  tally.isOver = true;
  process.send?.({ kind: "streams_timed" });
  await Promise.race([running, pause(DRAIN_MS)]);
  const result = resultOf({ ...tally, openMax }, fromMs, toMs);
  await agent.destroy();
  await running;
  return result;
}

function resultOf(tally: Tally, fromMs: number, toMs: number): StreamResult {
  const { streams, openMax, failures, failure } = tally;
  const isTimed = (atMs: number | undefined) => atMs !== undefined && atMs >= fromMs && atMs < toMs;
  // A stream without a first byte has waited until now, at least.
  const nowMs = performance.now();
  const latenciesMs = streams
    .filter(({ dueAtMs }) => isTimed(dueAtMs))
    .map(({ dueAtMs, firstByteAtMs = nowMs }) => firstByteAtMs - dueAtMs)
    .sort((a, b) => a - b);
  return {
    kind: "streams_ended",
    count: streams.filter(({ endedAtMs }) => isTimed(endedAtMs)).length,
    durationMs: toMs - fromMs,
    firstByteP50Ms: percentile(latenciesMs, 0.5),
    firstByteP99Ms: percentile(latenciesMs, 0.99),
    openMax,
    sent: streams.length,
    failures,
    failure,
  };
}

/** Open loop. A late timer is our own delay, so it doesn't count. */
async function atRate(
  tally: Tally,
  { perSecond }: { readonly perSecond: number },
  send: Send,
): Promise<void> {
  const startedAtMs = performance.now();
  const running: Promise<void>[] = [];
  for (let n = 0; !tally.isOver; n += 1) {
    const waitMs = startedAtMs + (n * 1000) / perSecond - performance.now();
    await (waitMs > 0 ? pause(waitMs) : nextTurn());
    running.push(send(performance.now()));
  }
  await Promise.all(running);
}

async function closed(tally: Tally, { streams }: { readonly streams: number }, send: Send): Promise<void> {
  const lane = async () => {
    while (!tally.isOver) {
      await send(performance.now());
      // If calls fail immediately, this loop must not block the event loop.
      await nextTurn();
    }
  };
  await Promise.all(Array.from({ length: streams }, lane));
}

interface Sending {
  readonly plan: StreamPlan;
  readonly body: Buffer;
  readonly agent: Agent;
  readonly tally: Tally;
}

/** Resolves once the stream has ended, as it should or not. */
function openStream({ plan, body, agent, tally }: Sending, dueAtMs: number): Promise<void> {
  const stream: Stream = { dueAtMs, firstByteAtMs: undefined, endedAtMs: undefined };
  tally.streams.push(stream);
  tally.open += 1;
  tally.openMax = Math.max(tally.openMax, tally.open);
  return new Promise((resolve) => {
    const end = (failure: string | undefined) => {
      tally.open -= 1;
      if (failure === undefined) {
        stream.endedAtMs = performance.now();
      } else if (!tally.isOver) {
        tally.failures += 1;
        tally.failure = failure;
      }
      resolve();
    };
    const { origin, headers } = plan;
    const options = { origin, path: PATH, method: "POST", headers, body } as const;
    agent.dispatch(options, handlerOf(plan, stream, end));
  });
}

function handlerOf(
  { ad = "" }: StreamPlan,
  stream: Stream,
  end: (failure: string | undefined) => void,
): Dispatcher.DispatchHandler {
  let failure: string | undefined;
  let last: Buffer = Buffer.alloc(0);
  return {
    onRequestStart: () => {},
    onResponseStart: (_controller, status, headers) => {
      const answered = String(headers[AD_HEADER] ?? "");
      failure = status === 200 && answered.startsWith(ad) ? undefined : `status ${status}, ad: ${answered}`;
    },
    onResponseData: (_controller, chunk) => {
      stream.firstByteAtMs ??= performance.now();
      last = chunk;
    },
    onResponseEnd: () => end(failure ?? (last.includes(LAST_BYTES) ? undefined : "it ends without [DONE]")),
    onResponseError: (_controller, error) => end(error.message),
  };
}

function bodyOf({ body }: StreamPlan): Buffer {
  return Buffer.from(
    body.kind === "fixed"
      ? body.text
      : `{"model":"${body.model}","stream":true,"messages":[{"role":"user","content":"${"x".repeat(body.bytes)}"}]}`,
  );
}
