/** Guards against one acknowledgment that always fails and blocks its whole provider account. */
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  eventually,
  fetchMetrics,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  sumOf,
  unknownId,
} from "@adrelay/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";

const MAX_AGE_MS = 30_000;
const PROBE_MS = 700;
const ASYNC = { headers: { Prefer: "respond-async" } };

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let caller: RelayCaller;

beforeEach(async () => {
  redis = await startTestRedis();
  provider = await startScriptedProvider();
  stack = await startRelayStack({
    redis,
    providerUrl: provider.url,
    env: {
      RETRY_SCHEDULE: "100ms,1m",
      DELIVERY_MAX_AGE: `${MAX_AGE_MS}ms`,
      BREAKER_PROBE_INTERVAL_MS: "300",
      DELIVERY_TIMEOUT_MS: "3000",
    },
  });
  caller = relayCaller(stack.gatewayUrl);
});
afterEach(async () => {
  await stack.stop();
  await provider.close();
  await redis.dispose();
});

const openCircuits = async () =>
  sumOf(await fetchMetrics(stack.workerOpsUrl), "adrelay_provider_circuit_open");
const countOf = async (state: string) =>
  sumOf(await fetchMetrics(stack.gatewayOpsUrl), "adrelay_acknowledgments", { state });

test("a new acknowledgment is the next probe, however many wait that have failed before", async () => {
  await stack.apps.get("worker")?.stop();
  await stack.start("worker", { BREAKER_PROBE_INTERVAL_MS: String(PROBE_MS), RETRY_SCHEDULE: "100ms" });
  provider.onAcknowledge(({ fields }) =>
    fields["llm_response"] === "poison" ? { kind: "answer", status: 500 } : acknowledged(),
  );
  const ids = Array.from({ length: 40 }, unknownId);
  await Promise.all(ids.map((id) => caller.acknowledgeUntilAccepted(id, "poison", ASYNC)));
  const isTriedTwice = (id: string) => provider.acknowledgmentsOf(id).length > 1;
  await eventually(
    () => expect(ids.every((id) => provider.acknowledgmentsOf(id).length > 0)).toBe(true),
    60_000,
  );
  await eventually(() => expect(ids.some(isTriedTwice)).toBe(true));
  await eventually(async () => expect(await openCircuits()).toBe(1));
  const sentAtMs = performance.now();
  await caller.acknowledgeUntilAccepted(unknownId(), "text", ASYNC);
  await eventually(async () => expect(await countOf("delivered")).toBe(1), 60_000);
  // If the others were first, it would wait for about forty probes.
  expect(performance.now() - sentAtMs).toBeLessThan(10 * PROBE_MS);
});

test("an acknowledgment that is always throttled waits as it was asked to, and no other waits", async () => {
  const poison = unknownId();
  provider.onAcknowledge(({ fields }) =>
    fields["ad_response_id"] === poison
      ? { kind: "answer", status: 429, headers: { "Retry-After": "3" } }
      : acknowledged(),
  );
  await caller.acknowledgeUntilAccepted(poison, "text", ASYNC);
  for (const turn of [1, 2]) {
    await eventually(() => expect(provider.acknowledgmentsOf(poison).length).toBeGreaterThanOrEqual(turn));
    await caller.acknowledgeUntilAccepted(unknownId(), "text", ASYNC);
    await eventually(async () => expect(await countOf("delivered")).toBe(turn), 2900);
    expect(await openCircuits()).toBe(0);
  }
  const times = provider.acknowledgmentsOf(poison).map(({ atMs }) => atMs);
  const waits = times.slice(1).map((atMs, at) => atMs - (times[at] ?? 0));
  expect(Math.min(...waits)).toBeGreaterThan(2900);
});
