/** Redis is flushed under traffic: the relay reports it and goes on, and its counters balance again. */
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
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";

const DETECTED_WITHIN_MS = 10_000;

let server: TestRedis;
let redis: Redis;
let provider: ScriptedProvider;
let stack: RelayStack;
let caller: RelayCaller;

beforeEach(async () => {
  [server, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  redis = new Redis(server.url, { maxRetriesPerRequest: null, retryStrategy: () => 50 });
  redis.on("error", () => {});
  stack = await startRelayStack({ redis: server, providerUrl: provider.url });
  caller = relayCaller(stack.gatewayUrl);
});
afterEach(async () => {
  await stack.stop();
  redis.disconnect();
  await Promise.all([provider.close(), server.dispose()]);
});

/** Sends injections and acknowledgments until it is stopped. `stop` resolves to the status of each acknowledgment. */
function startTraffic(): { stop(): Promise<number[]> } {
  const statuses: number[] = [];
  let isRunning = true;
  const run = async () => {
    while (isRunning) {
      const { body } = await caller.inject();
      statuses.push((await caller.acknowledge(body["ad_response_id"], "text")).status);
    }
  };
  const runs = Promise.all([run(), run(), run(), run()]);
  return {
    stop: async () => {
      isRunning = false;
      await runs;
      return statuses;
    },
  };
}

async function readinessOf(opsUrl: string): Promise<unknown> {
  const response = await fetch(`${opsUrl}/readyz`);
  expect(response.status).toBe(200);
  const body: unknown = await response.json();
  return body;
}

const balanceOf = (samples: Samples) => ({
  injected: sumOf(samples, "adrelay_injections_recorded_total", { outcome: "ok" }),
  unknown: sumOf(samples, "adrelay_acknowledgments_unknown_total"),
  booked: sumOf(samples, "adrelay_acknowledgments"),
});

test("readiness, metric and log report FLUSHALL within seconds, and the relay goes on", async () => {
  await caller.injectUntilFilled();
  const traffic = startTraffic();
  const opsUrls = [stack.gatewayOpsUrl, stack.workerOpsUrl];
  await eventually(async () =>
    expect(sumOf(await fetchMetrics(stack.gatewayOpsUrl), "adrelay_acknowledgments")).toBeGreaterThan(20),
  );
  const beats = async () => Number(await redis.hget("{adrelay:0}:heartbeat", "beat"));
  const beatsBefore = await beats();
  // Each process has written heartbeats since there were entries.
  await eventually(async () => expect(await beats()).toBeGreaterThan(beatsBefore + 3));
  await redis.flushall();
  await Promise.all(
    opsUrls.map((url) =>
      eventually(
        async () =>
          expect(await readinessOf(url)).toMatchObject({
            status: "ready",
            warnings: { redis_data: expect.stringMatching(/^data lost at .*: .*about \d+ queued/) },
          }),
        DETECTED_WITHIN_MS,
      ),
    ),
  );
  for (const url of opsUrls) {
    await eventually(async () =>
      expect(sumOf(await fetchMetrics(url), "adrelay_redis_data_losses_total")).toBe(1),
    );
  }
  for (const app of stack.apps.values()) {
    expect(app.logs.filter(({ event }) => event === "redis_data_lost")).toEqual([
      expect.objectContaining({ level: "error", awaiting: expect.any(Number), queued: expect.any(Number) }),
    ]);
  }
  const answer = await caller.acknowledgeUntilAccepted(await caller.injectUntilFilled(), "text", {
    headers: { Prefer: "wait=10" },
  });
  expect(answer).toMatchObject({ status: 200, body: { status: "ok" } });
  const statuses = await traffic.stop();
  expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(20);
  expect(statuses.filter((status) => status >= 500 && status !== 503)).toEqual([]);
  await eventually(async () => {
    const samples = await fetchMetrics(stack.gatewayOpsUrl);
    expect(sumOf(samples, "adrelay_acknowledgments", { state: "queued" })).toBe(0);
    const { injected, unknown, booked } = balanceOf(samples);
    expect(injected).toBeGreaterThan(0);
    expect(injected + unknown).toBe(booked);
  }, 15_000);
});

test("a process that starts after a data loss reports it too", async () => {
  await eventually(async () => expect(await redis.hlen("{adrelay:0}:processes")).toBe(2));
  await redis.flushall();
  await eventually(
    async () => expect(await readinessOf(stack.workerOpsUrl)).toHaveProperty("warnings"),
    DETECTED_WITHIN_MS,
  );
  await stack.apps.get("gateway")?.stop();
  await stack.start("gateway");
  await eventually(async () => expect(await readinessOf(stack.gatewayOpsUrl)).toHaveProperty("warnings"));
  expect(sumOf(await fetchMetrics(stack.gatewayOpsUrl), "adrelay_redis_data_losses_total")).toBe(0);
});

test("a killed Redis that returns with all its data is no data loss", async () => {
  const traffic = startTraffic();
  const beats = () => redis.hget("{adrelay:0}:heartbeat", "beat").then(Number);
  for (let round = 0; round < 2; round += 1) {
    await eventually(async () => expect(await beats()).toBeGreaterThan(0));
    const before = await beats();
    await server.crash();
    await server.restart();
    await eventually(async () => expect(await beats()).toBeGreaterThan(before + 4), 15_000);
  }
  await traffic.stop();
  for (const url of [stack.gatewayOpsUrl, stack.workerOpsUrl]) {
    expect(await readinessOf(url)).not.toHaveProperty("warnings");
    expect(sumOf(await fetchMetrics(url), "adrelay_redis_data_losses_total")).toBe(0);
  }
});
