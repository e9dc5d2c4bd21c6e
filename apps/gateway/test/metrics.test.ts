/** Guards against missing series, which would hide faults, and against callers that can add series. */
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  eventually,
  fetchLedgerMetrics,
  fetchMetrics,
  filled,
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

test("a configured publisher has every series at zero before anything happens", async () => {
  const [gateway, worker] = await Promise.all([
    fetchLedgerMetrics(stack.gatewayOpsUrl),
    fetchLedgerMetrics(stack.workerOpsUrl),
  ]);
  for (const samples of [gateway, worker]) {
    expect(samples.get('adrelay_acknowledgments_missed_total{publisher="default"}')).toBe(0);
    expect(samples.get('adrelay_acknowledgments_dead_total{publisher="default",reason="exhausted"}')).toBe(0);
    expect(samples.get('adrelay_acknowledgments{publisher="default",state="missed"}')).toBe(0);
    expect(samples.get("adrelay_books_imbalance")).toBe(0);
  }
  expect(
    gateway.get('adrelay_injections_total{outcome="fallback",publisher="default",reason="timeout"}'),
  ).toBe(0);
  expect(gateway.get('adrelay_publisher_calls_total{publisher="default",status="4xx"}')).toBe(0);
  expect(worker.get("adrelay_dead_letter_retention_seconds")).toBe(30 * 86_400);
  expect(worker.get('adrelay_delivery_attempts_total{outcome="die"}')).toBe(0);
});

test("the time from injection to acknowledgment is measured once for each", async () => {
  const id = await caller.injectUntilFilled();
  await caller.acknowledgeUntilAccepted(id, "text");
  await caller.acknowledgeUntilAccepted(id, "text");
  const samples = await fetchMetrics(stack.gatewayOpsUrl);
  expect(sumOf(samples, "adrelay_acknowledgment_delay_seconds_count")).toBe(1);
});

const fallbacksOf = (samples: Samples, reason: string) =>
  sumOf(samples, "adrelay_injections_total", { outcome: "fallback", publisher: "default", reason });

test.each([
  ["provider_error", 500],
  ["rate_limited", 429],
  ["unauthorized", 401],
])("a fallback is counted with its reason %s", async (reason, status) => {
  provider.onStart(() => ({ kind: "answer", status }));
  const { headers } = await caller.inject();
  provider.onStart(() => filled());
  expect(headers.get("X-Adrelay-Fallback")).toBe(reason);
  expect(fallbacksOf(await fetchMetrics(stack.gatewayOpsUrl), reason)).toBe(1);
});

test("calls to a provider name its account, in both processes", async () => {
  await caller.acknowledgeUntilAccepted(await caller.injectUntilFilled(), "text");
  const name = "adrelay_provider_request_duration_seconds_count";
  const provider = "default";
  const gateway = await fetchMetrics(stack.gatewayOpsUrl);
  expect(sumOf(gateway, name, { operation: "start_injection", provider })).toBeGreaterThan(0);
  await eventually(async () => {
    const worker = await fetchMetrics(stack.workerOpsUrl);
    expect(sumOf(worker, name, { operation: "acknowledge", provider, outcome: "2xx" })).toBeGreaterThan(0);
  });
});

const callsOf = async (status: string) =>
  sumOf(await fetchMetrics(stack.gatewayOpsUrl), "adrelay_publisher_calls_total", {
    publisher: "default",
    status,
  });

test("calls are counted for their publisher by class of status, those without a valid key for none", async () => {
  const [answered, refused] = [await callsOf("2xx"), await callsOf("4xx")];
  await caller.inject();
  await caller.acknowledge("no-uuid", "text");
  await relayCaller(stack.gatewayUrl, "key-of-nobody").inject();
  // A call is counted once its answer is out.
  await eventually(async () => {
    expect([await callsOf("2xx"), await callsOf("4xx")]).toEqual([answered + 1, refused + 1]);
  });
});

test.each([
  ["application/openmetrics-text;q=0, text/plain", "text/plain"],
  ["text/plain;q=0.5, application/openmetrics-text;q=0.4", "text/plain"],
  ["text/plain;q=0.4, application/openmetrics-text;q=0.5", "application/openmetrics-text"],
])("a scraper that accepts %s gets %s", async (accept, type) => {
  const response = await fetch(`${stack.workerOpsUrl}/metrics`, { headers: { Accept: accept } });
  expect(response.headers.get("Content-Type")).toContain(type);
  expect((await response.text()).includes("# EOF")).toBe(type !== "text/plain");
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
