/**
 * Guards the central count: of 2,000 injections 300 are never acknowledged, while worker and Redis are killed. Exactly
 * these are missed, and with them injections that Redis recorded although their gateway no longer waited for it. Every
 * replica shows the same counts, and the counters balance in every scrape.
 */
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  eventually,
  fetchMetrics,
  pause,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type Samples,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  sumOf,
} from "@adrelay/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";

const INJECTIONS = 2000;
const NEVER_ACKNOWLEDGED = 300;
const LANES = 20;
/** Longer than Redis is ever down here, so that every acknowledgment is in time. */
const DEADLINE_MS = 20_000;
const PATIENCE_MS = 15_000;
const KILLS = 3;

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let caller: RelayCaller;

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  const env = { ACK_DEADLINE_MS: String(DEADLINE_MS) };
  stack = await startRelayStack({ redis, providerUrl: provider.url, env });
  caller = relayCaller(stack.gatewayUrl);
});
afterAll(async () => {
  await stack.stop();
  await provider.close();
  await redis.dispose();
});

/** Injections that were answered while Redis was down or slow, and that were unknown afterwards. */
const unrecorded: string[] = [];

/** Gets an ad whose injection is recorded. One that is answered while Redis is down is not, so a new one is made. */
async function injectRecorded(): Promise<string> {
  return eventually(async () => {
    const id = await caller.injectUntilFilled();
    const known = await eventually(async () => {
      const { status } = await caller.lookUp(id);
      expect(status).not.toBe(503);
      return status === 200;
    }, PATIENCE_MS);
    if (!known) {
      unrecorded.push(id);
      throw new TypeError(`${id} isn't recorded`);
    }
    return id;
  }, PATIENCE_MS);
}

/** How many were recorded after all: Redis may carry out a write although its gateway no longer waits for the reply. */
async function countMissed(ids: readonly string[]): Promise<number> {
  const answers = await Promise.all(ids.map((id) => caller.lookUp(id)));
  const known = answers.filter(({ status }) => status !== 404);
  expect(known.filter(({ body }) => body["state"] !== "missed")).toEqual([]);
  return known.length;
}

async function acknowledge(id: string): Promise<void> {
  await eventually(async () => {
    const { status } = await caller.acknowledge(id, "text", { headers: { Prefer: "respond-async" } });
    expect([200, 201]).toContain(status);
  }, PATIENCE_MS);
}

/** The traffic. Of each twenty ads, the first three are not acknowledged. */
async function runTraffic(): Promise<void> {
  const perTwenty = (NEVER_ACKNOWLEDGED * 20) / INJECTIONS;
  let next = 0;
  const lane = async () => {
    for (let at = next; at < INJECTIONS; at = next) {
      next += 1;
      const id = await injectRecorded();
      if (at % 20 >= perTwenty) {
        await acknowledge(id);
      }
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

async function killSometimes(isDone: () => boolean): Promise<void> {
  for (let kill = 0; kill < KILLS && !isDone(); kill += 1) {
    await pause(1500);
    await Promise.all([
      stack.crash("worker").then(() => stack.start("worker")),
      redis.crash().then(() => redis.restart()),
    ]);
  }
}

/** All scrapes that have the ledger's counts. A scrape while Redis is down has none. */
async function scrapeUntil(isDone: () => boolean): Promise<Samples[]> {
  const seen: Samples[] = [];
  while (!isDone()) {
    for (const url of [stack.gatewayOpsUrl, stack.workerOpsUrl]) {
      const samples = await fetchMetrics(url).catch(() => undefined);
      if (samples?.has("adrelay_books_imbalance")) {
        seen.push(samples);
      }
    }
    await pause(100);
  }
  return seen;
}

test(`of ${INJECTIONS} injections exactly the ${NEVER_ACKNOWLEDGED} never acknowledged are missed, despite kills`, async () => {
  let isOver = false;
  const scrapes = scrapeUntil(() => isOver);
  let isSent = false;
  await Promise.all([runTraffic().then(() => (isSent = true)), killSometimes(() => isSent)]);
  const replicas = await eventually(async () => {
    const each = await Promise.all([stack.gatewayOpsUrl, stack.workerOpsUrl].map(fetchMetrics));
    for (const samples of each) {
      // While Redis is down, the counters are missing.
      expect(sumOf(samples, "adrelay_acknowledgments")).toBeGreaterThan(0);
      expect(sumOf(samples, "adrelay_acknowledgments", { state: "awaiting" })).toBe(0);
      expect(sumOf(samples, "adrelay_acknowledgments", { state: "queued" })).toBe(0);
    }
    return each;
  }, 90_000);
  isOver = true;
  const recordedAfterAll = await countMissed(unrecorded);
  expect(recordedAfterAll).toBeLessThanOrEqual(KILLS * LANES);
  for (const samples of replicas) {
    const total = (name: string) => sumOf(samples, `adrelay_acknowledgments_${name}_total`);
    expect({
      missed: total("missed"),
      late: total("late"),
      delivered: total("delivered"),
      unknown: total("unknown"),
    }).toEqual({
      missed: NEVER_ACKNOWLEDGED + recordedAfterAll,
      late: 0,
      delivered: INJECTIONS - NEVER_ACKNOWLEDGED,
      unknown: 0,
    });
  }
  const all = await scrapes;
  expect(all.length).toBeGreaterThan(50);
  expect(all.filter((samples) => samples.get("adrelay_books_imbalance") !== 0)).toEqual([]);
});
