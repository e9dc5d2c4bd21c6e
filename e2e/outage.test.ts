/** What the relay does while Redis or the provider is down, and that everything works once it is back. */
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AdServerProcess,
  eventually,
  fetchLedgerMetrics,
  fetchMetrics,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  startAdServer,
  startRelayStack,
  sumOf,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

/** A text that only the provider may get. */
const CANARY = "canary-of-a-user";

const PATIENT = { headers: { Prefer: "wait=10" } };

/** The time limit of an attempt is long, so that a busy machine repeats none. */
const SETTINGS = { ACK_DEADLINE_MS: "700", DELIVERY_TIMEOUT_MS: "5000" };

let redis: TestRedis;
let adServerRedis: TestRedis;
let adServer: AdServerProcess;
let stack: RelayStack;
let caller: RelayCaller;

// It has its own Redis, so that no test leaves faults of Redis to the next one.
beforeAll(async () => {
  adServerRedis = await startTestRedis();
  adServer = await startAdServer(adServerRedis);
});
afterAll(async () => {
  await adServer.stop();
  await adServerRedis.dispose();
});
beforeEach(async () => {
  redis = await startTestRedis();
  stack = await startRelayStack({ redis, providerUrl: adServer.url, env: SETTINGS });
  caller = relayCaller(stack.gatewayUrl);
});
afterEach(async () => {
  await stack.stop();
  await redis.dispose();
});

const becomes = (id: string, state: string, timeoutMs = 10_000) =>
  eventually(async () => expect((await caller.lookUp(id)).body["state"]).toBe(state), timeoutMs);

test("an acknowledgment accepted while the ad server is down is delivered later", async () => {
  const id = await caller.injectUntilFilled();
  await adServer.crash();
  const answer = await caller.acknowledgeUntilAccepted(id, "Stridewell Tempo 3 (ad)");
  expect(answer.status).toBe(201);
  expect((await caller.inject()).headers.get("X-Adrelay-Fallback")).toBe("unreachable");
  await adServer.start();
  await becomes(id, "delivered");
  expect(await adServer.acknowledgmentOf(id)).toMatchObject({ acknowledged: true, posts: 1 });
});

test("an unacknowledged ad is missed once, and its late acknowledgment is delivered", async () => {
  const id = await caller.injectUntilFilled();
  const missedTotal = async () =>
    sumOf(await fetchMetrics(stack.gatewayOpsUrl), "adrelay_acknowledgments_missed_total");
  await eventually(async () => expect(await missedTotal()).toBe(1), 10_000);
  expect((await caller.lookUp(id)).body["state"]).toBe("missed");
  const late = await caller.acknowledgeUntilAccepted(id, "Stridewell Tempo 3 (ad)", PATIENT);
  expect(late.status).toBe(200);
  const samples = await fetchLedgerMetrics(stack.workerOpsUrl);
  expect(sumOf(samples, "adrelay_acknowledgments_missed_total")).toBe(1);
  expect(sumOf(samples, "adrelay_acknowledgments_late_total")).toBe(1);
  expect(sumOf(samples, "adrelay_acknowledgments", { state: "missed" })).toBe(0);
  expect(sumOf(samples, "adrelay_acknowledgments", { state: "delivered" })).toBe(1);
});

test.each([
  ["stopped", (server: TestRedis) => server.stop(), (server: TestRedis) => server.restart()],
  ["killed", (server: TestRedis) => server.crash(), (server: TestRedis) => server.restart()],
  ["frozen", (server: TestRedis) => server.freeze(), (server: TestRedis) => server.thaw()],
] as const)(
  "with Redis %s injections work, acknowledgments get 503, and recover within 2 s",
  async (_how, takeAway, bringBack) => {
    const id = await caller.injectUntilFilled();
    const untracked = async () =>
      sumOf(await fetchLedgerMetrics(stack.gatewayOpsUrl), "adrelay_injections_untracked_total");
    const before = await untracked();
    await takeAway(redis);
    const injection = await caller.inject();
    expect(injection.status).toBe(200);
    expect(injection.durationMs).toBeLessThan(1900);
    const refused = await caller.acknowledge(id, "text");
    expect(refused.body).toMatchObject({ status: 503, code: "queue_unavailable" });
    expect(refused.headers.get("Retry-After")).toBe("1");
    expect(refused.durationMs).toBeLessThan(1900);
    await bringBack(redis);
    await eventually(
      async () => expect((await caller.acknowledge(id, "text")).status).toBeLessThan(300),
      2000,
    );
    await caller.injectUntilFilled();
    await becomes(id, "delivered");
    expect(await untracked()).toBe(before + 1);
  },
);

test.each([
  ["OOM", "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "storage_full"],
  ["READONLY", "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "queue_unavailable"],
])(
  "a Redis that refuses writes with %s makes acknowledgments 503 and injections untracked",
  async (_name, breakIt, repairIt, code) => {
    const admin = new Redis(redis.url);
    const id = await caller.injectUntilFilled();
    await command(admin, breakIt);
    expect((await caller.acknowledge(id, CANARY)).body).toMatchObject({ status: 503, code });
    expect((await caller.inject()).status).toBe(200);
    await command(admin, repairIt);
    admin.disconnect();
    await eventually(
      async () => expect((await caller.acknowledge(id, CANARY)).status).toBeLessThan(300),
      3000,
    );
    await becomes(id, "delivered");
    const logs = [...stack.apps.values()].flatMap((app) => app.logs);
    expect(logs).toContainEqual(expect.objectContaining({ event: "intake_failed" }));
    expect(JSON.stringify(logs)).not.toContain(CANARY);
  },
);

test.each(["SIGTERM", "SIGINT"] as const)(
  "%s ends gateway and worker with 0, even with Redis frozen",
  async (signal) => {
    await redis.freeze();
    const apps = [...stack.apps.values()];
    for (const app of apps) {
      app.kill(signal);
    }
    const startedAtMs = performance.now();
    expect(await Promise.all(apps.map((app) => app.exited))).toEqual([0, 0]);
    expect(performance.now() - startedAtMs).toBeLessThan(7000);
    await redis.thaw();
  },
);

function command(client: Redis, line: string): Promise<unknown> {
  const [name = "", ...args] = line.split(" ");
  return client.call(name, ...args);
}
