import { eventually, fetchMetrics, sumOf } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";
import { callerOf, get, PROMPTS, startAdServer, type TestAdServer } from "./ad-server.ts";

let server: TestAdServer;
beforeEach(async () => {
  server = await startAdServer();
});
afterEach(() => server.dispose());

/** Makes the state before a crash that a test expects after it. */
async function makeState() {
  const caller = callerOf(server);
  const open = await caller.served();
  const closed = await caller.served();
  const unfilled = await caller.served(PROMPTS.no_fill);
  const { body } = await caller.acknowledge(closed.id, closed.product);
  return { open, closed, unfilled, adAckId: body["ad_ack_id"] };
}

async function expectNothingLost({ open, closed, unfilled, adAckId }: Awaited<ReturnType<typeof makeState>>) {
  const caller = callerOf(server);
  const repeated = await caller.acknowledge(closed.id, "again");
  expect(repeated.body).toMatchObject({ status: 409, ad_ack_id: adAckId, acknowledgment_status: "ok" });
  expect((await caller.acknowledge(open.id, open.product)).body).toMatchObject({ status: "ok" });
  expect((await caller.acknowledge(unfilled.id, "x")).status).toBe(406);
  const metrics = await fetchMetrics(server.opsUrl());
  expect(sumOf(metrics, "adserver_acknowledgments_total", { status: "ok" })).toBe(2);
  expect(sumOf(metrics, "adserver_injections_total", { outcome: "ok" })).toBe(2);
  expect(sumOf(metrics, "adserver_injections_total", { outcome: "no_fill" })).toBe(1);
}

test("a kill -9 of the ad server loses nothing", async () => {
  const before = await makeState();
  await server.crashAndRestart();
  await expectNothingLost(before);
});

test("a kill -9 of Redis loses nothing", async () => {
  const before = await makeState();
  await server.redis.crash();
  await server.redis.restart();
  await eventually(async () => expect((await get(`${server.opsUrl()}/readyz`)).status).toBe(200));
  await expectNothingLost(before);
});

test.each(["crash", "freeze"] as const)("while Redis is away (%s), every call is soon 503", async (how) => {
  const caller = callerOf(server);
  const { id, product } = await caller.served();
  await server.redis[how]();
  for (const call of [
    () => caller.start(PROMPTS.ok),
    () => caller.acknowledge(id, product),
    () => caller.lookUp(id),
  ]) {
    const startedAtMs = performance.now();
    const { status, headers, body } = await call();
    expect(performance.now() - startedAtMs).toBeLessThan(1900);
    expect([status, body["code"], headers.get("retry-after")]).toEqual([503, "storage_unavailable", "1"]);
  }
  expect((await get(`${server.opsUrl()}/readyz`)).status).toBe(503);
  expect((await get(`${server.opsUrl()}/healthz`)).status).toBe(200);
  expect([...(await fetchMetrics(server.opsUrl())).keys()].join()).not.toContain(
    "adserver_acknowledgments_total",
  );
});

test("the ad server serves again within 2 s after Redis is back", async () => {
  const caller = callerOf(server);
  const { id, product } = await caller.served();
  await server.redis.crash();
  expect((await caller.acknowledge(id, product)).status).toBe(503);
  await server.redis.restart();
  await eventually(async () => expect((await caller.acknowledge(id, product)).status).toBe(200), 2000);
});

test("a response is kept for 30 days", async () => {
  const { id } = await callerOf(server).served();
  const redis = new Redis(server.redis.url);
  const leftMs = await redis.pttl(`{adserver}:response:${id}`);
  await redis.quit();
  expect(leftMs / 86_400_000).toBeGreaterThan(29.9);
  expect(leftMs / 86_400_000).toBeLessThanOrEqual(30);
});
