/** Guards against missing series, which would hide faults, and against callers that can add series. */
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  eventually,
  fetchMetrics,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type Samples,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  sumOf,
  TEST_API_KEY,
} from "@adrelay/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let caller: RelayCaller;

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  stack = await startRelayStack({ redis, providerUrl: provider.url });
  caller = relayCaller(stack.gatewayUrl);
});
afterAll(async () => {
  await stack.stop();
  await Promise.all([provider.close(), redis.dispose()]);
});

/** If Redis is slow, a scrape lacks the ledger's metrics. Such a scrape is repeated. */
async function withBooks(opsUrl: string): Promise<Samples> {
  return eventually(async () => {
    const samples = await fetchMetrics(opsUrl);
    expect(samples.has("adrelay_books_imbalance")).toBe(true);
    return samples;
  });
}

test("a configured publisher has every series at zero before anything happens", async () => {
  const [gateway, worker] = await Promise.all([
    withBooks(stack.gatewayOpsUrl),
    withBooks(stack.workerOpsUrl),
  ]);
  for (const samples of [gateway, worker]) {
    expect(samples.get('adrelay_acknowledgments_missed_total{publisher="default"}')).toBe(0);
    expect(samples.get('adrelay_acknowledgments_dead_total{publisher="default",reason="exhausted"}')).toBe(0);
    expect(samples.get('adrelay_acknowledgments{publisher="default",state="missed"}')).toBe(0);
    expect(samples.get("adrelay_books_imbalance")).toBe(0);
  }
  expect(gateway.get('adrelay_injections_total{outcome="fallback",publisher="default"}')).toBe(0);
  expect(worker.get('adrelay_delivery_attempts_total{outcome="die"}')).toBe(0);
});

test("the time from injection to acknowledgment is measured once for each", async () => {
  const { body } = await caller.inject();
  const id = body["ad_response_id"];
  await caller.acknowledge(id, "text");
  await caller.acknowledge(id, "text");
  const samples = await fetchMetrics(stack.gatewayOpsUrl);
  expect(sumOf(samples, "adrelay_acknowledgment_delay_seconds_count")).toBe(1);
});

const ODD_CALLS = 10_000;
const LANES = 32;

test("ten thousand odd paths, keys and methods add no series", { timeout: 120_000 }, async () => {
  const odd = async (at: number) => {
    const headers = { "X-Service-API-Key": at % 3 === 0 ? TEST_API_KEY : `odd-key-${at}` };
    const paths = [`/odd/${at}`, `/api/ad-injection/acknowledgments/odd-${at}/`, "/api/ad-injection/start/"];
    const methods = ["GET", "DELETE"];
    await fetch(`${stack.gatewayUrl}${paths[at % 3]}`, { method: methods[at % 2] ?? "GET", headers });
  };
  const send = async (from: number, to: number) => {
    let next = from;
    const lane = async () => {
      for (let at = next; at < to; at = next) {
        next += 1;
        await odd(at);
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
  };
  await send(0, 60);
  // A request is measured once its answer is out.
  await eventually(async () => {
    const seen = sumOf(
      await fetchMetrics(stack.gatewayOpsUrl),
      "adrelay_http_request_duration_seconds_count",
    );
    expect(seen).toBeGreaterThan(60);
  });
  const before = [...(await fetchMetrics(stack.gatewayOpsUrl)).keys()].filter(isOurs);
  await send(60, ODD_CALLS);
  const after = [...(await fetchMetrics(stack.gatewayOpsUrl)).keys()].filter(isOurs);
  expect(after.toSorted()).toEqual(before.toSorted());
});

function isOurs(series: string): boolean {
  return series.startsWith("adrelay_");
}
