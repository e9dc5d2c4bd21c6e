/**
 * Guards against an outage of hours that ends in dead letters or in a flood of calls: 10,000 acknowledgments, and a
 * provider that is down for three hours. All times of the settings are scaled by 1:480, so the outage lasts 22.5 s. The
 * recovery rate is not scaled.
 */
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  eventually,
  fetchMetrics,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  sumOf,
  unknownId,
} from "@adrelay/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";

const SCALE = 480;
const ACKNOWLEDGMENTS = 10_000;
const LANES = 64;
const OUTAGE_MS = (3 * 3_600_000) / SCALE;
const RATE = 2000;
const SECOND_MS = 1000;
const HOUR_MS = 3_600_000;
/** The defaults of RETRY_SCHEDULE, DELIVERY_MAX_AGE and BREAKER_PROBE_INTERVAL_MS. */
const SCHEDULE_MS = [
  5000,
  30_000,
  120_000,
  600_000,
  1_800_000,
  HOUR_MS,
  2 * HOUR_MS,
  4 * HOUR_MS,
  8 * HOUR_MS,
];
const MAX_AGE_MS = 72 * HOUR_MS;
const PROBE_MS = 5000;

const ASYNC = { headers: { Prefer: "respond-async" } };

const scaled = (durationMs: number) => Math.round(durationMs / SCALE);

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;

beforeAll(async () => {
  redis = await startTestRedis();
  provider = await startScriptedProvider();
  provider.onAcknowledge(() => ({ kind: "answer", status: 503 }));
  stack = await startRelayStack({
    redis,
    providerUrl: provider.url,
    env: {
      RETRY_SCHEDULE: SCHEDULE_MS.map((waitMs) => `${scaled(waitMs)}ms`).join(","),
      DELIVERY_MAX_AGE: `${scaled(MAX_AGE_MS)}ms`,
      BREAKER_PROBE_INTERVAL_MS: String(scaled(PROBE_MS)),
      RECOVERY_RATE_PER_SECOND: String(RATE),
      // The provider always answers. A busy machine repeats no attempt.
      DELIVERY_TIMEOUT_MS: "10000",
    },
  });
});
afterAll(async () => {
  await stack.stop();
  await provider.close();
  await redis.dispose();
});

async function queueAll(): Promise<void> {
  const caller = relayCaller(stack.gatewayUrl);
  let left = ACKNOWLEDGMENTS;
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      const answer = await caller.acknowledgeUntilAccepted(unknownId(), "text", ASYNC);
      expect(answer.status).toBe(201);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

const stateCount = async (state: string) =>
  sumOf(await fetchMetrics(stack.gatewayOpsUrl), "adrelay_acknowledgments", { state });

/** The highest number of posts within one second. */
function peakRate(timesMs: readonly number[]): number {
  let from = 0;
  return timesMs.reduce((peak, atMs, at) => {
    while (atMs - (timesMs[from] ?? 0) >= SECOND_MS) {
      from += 1;
    }
    return Math.max(peak, at - from + 1);
  }, 0);
}

test("after an outage of hours all 10,000 are delivered without a flood", {
  timeout: 300_000,
}, async () => {
  const startedAtMs = performance.now();
  await queueAll();
  await eventually(
    () => expect(performance.now() - startedAtMs).toBeGreaterThan(OUTAGE_MS),
    OUTAGE_MS + 60_000,
  );
  const postsInOutage = provider.posts.length;
  const backAtMs = performance.now();
  provider.onAcknowledge(() => acknowledged());
  await eventually(async () => expect(await stateCount("delivered")).toBe(ACKNOWLEDGMENTS), 180_000);

  expect(await stateCount("dead")).toBe(0);
  expect(await stateCount("queued")).toBe(0);
  // Only probes, and attempts that were under way when the circuit opened.
  expect(postsInOutage).toBeLessThan(scaled(3 * HOUR_MS) / scaled(PROBE_MS) + 200);
  const after = provider.posts.map(({ atMs }) => atMs).filter((atMs) => atMs >= backAtMs);
  const firstMinute = after.filter((atMs) => atMs < backAtMs + 60 * SECOND_MS);
  const peak = peakRate(firstMinute);
  console.log(
    `outage: ${postsInOutage} posts in ${Math.round(OUTAGE_MS / 1000)} s; recovery: peak ${peak}/s of ${RATE}/s, ` +
      `done ${Math.round(((after.at(-1) ?? 0) - backAtMs) / 1000)} s after the provider was back`,
  );
  expect(peak).toBeLessThanOrEqual(RATE);
  expect(after).toHaveLength(ACKNOWLEDGMENTS);
});
