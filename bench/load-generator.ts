/**
 * Sends load. It runs as a separate process, so it shares no event loop with the server that it measures. It keeps every
 * single latency, so percentiles are exact.
 */
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import { Client } from "undici";
import { percentile } from "./figures.ts";
import { acknowledgmentBody, benchId, type LoadPlan, type LoadResult, loadPlanSchema } from "./load.ts";

process.on("message", (message) => {
  void run(loadPlanSchema.parse(message)).then((result) => process.send?.(result));
});
process.on("disconnect", () => process.exit(0));
process.send?.({ kind: "ready" });

/** The results of a run so far. */
interface Tally {
  readonly startedAtMs: number;
  latenciesMs: number[];
  sent: number;
  failures: number;
  failure: string;
  isOver: boolean;
}

async function run(plan: LoadPlan): Promise<LoadResult> {
  const startedAtMs = performance.now();
  const tally: Tally = { startedAtMs, latenciesMs: [], sent: 0, failures: 0, failure: "", isOver: false };
  const clients = Array.from({ length: plan.connections }, () => new Client(plan.origin, { pipelining: 1 }));
  const lanes = clients.map((client) => lane(plan, tally, client));
  const { count, durationMs } = await timed(plan, tally, lanes);
  const sorted = tally.latenciesMs.slice(0, count).sort((a, b) => a - b);
  tally.isOver = true;
  await Promise.all(lanes);
  await Promise.all(clients.map((client) => client.close()));
  const { sent, failures, failure } = tally;
  const [p50Ms, p99Ms] = [percentile(sorted, 0.5), percentile(sorted, 0.99)];
  return { kind: "ended", count, durationMs, p50Ms, p99Ms, sent, failures, failure };
}

/** Waits for the end of the timed part. */
async function timed({ length }: LoadPlan, tally: Tally, lanes: readonly Promise<void>[]) {
  if (length.kind === "time") {
    await pause(length.warmupMs);
    tally.latenciesMs = [];
  }
  process.send?.({ kind: "begun" });
  const startedAtMs = performance.now();
  await (length.kind === "time" ? pause(length.durationMs) : Promise.all(lanes));
  return { count: tally.latenciesMs.length, durationMs: performance.now() - startedAtMs };
}

async function lane(plan: LoadPlan, tally: Tally, client: Client): Promise<void> {
  const most = plan.length.kind === "count" ? plan.length.count : Number.POSITIVE_INFINITY;
  while (!tally.isOver && tally.sent < most) {
    const n = tally.sent;
    tally.sent += 1;
    const body = bodyOf(plan, n);
    const startedAtMs = await untilDue(plan, tally, n);
    const failure = await send(plan, client, body);
    if (failure !== undefined) {
      tally.failures += 1;
      tally.failure = failure;
      // If requests fail immediately, this loop must not block the event loop.
      await nextTurn();
      continue;
    }
    tally.latenciesMs.push(performance.now() - startedAtMs);
  }
}

/**
 * Waits until the n-th request is due and returns the time from which its latency counts. If the connection became free
 * only after the due time, the latency counts from the due time. The delay of a late timer is our own and doesn't count.
 */
async function untilDue({ ratePerSecond }: LoadPlan, tally: Tally, n: number): Promise<number> {
  const nowMs = performance.now();
  const dueAtMs = ratePerSecond === undefined ? nowMs : tally.startedAtMs + (n * 1000) / ratePerSecond;
  if (dueAtMs <= nowMs) {
    return dueAtMs;
  }
  await pause(dueAtMs - nowMs);
  return performance.now();
}

function bodyOf({ body }: LoadPlan, n: number): string {
  return body.kind === "fixed" ? body.text : acknowledgmentBody(benchId(body.prefix, n));
}

/** Sends one request. Resolves to undefined if the answer is as expected, otherwise to what was wrong. */
function send(
  { method = "POST", path, headers, status }: LoadPlan,
  client: Client,
  body: string,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    let failure: string | undefined;
    client.dispatch(
      { path, method, headers, ...(method === "POST" ? { body } : {}) },
      {
        onRequestStart: () => {},
        onResponseData: () => {},
        onResponseStart: (_controller, answered) => {
          failure = answered === status ? undefined : `status ${answered}`;
        },
        onResponseEnd: () => resolve(failure),
        onResponseError: (_controller, error) => resolve(error.message),
      },
    );
  });
}
