/** Guards against an acknowledgment that waits for its provider and that no worker looks for. */
import { randomUUID } from "node:crypto";
import { adAckIdSchema, adResponseIdSchema, publisherIdSchema } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { ProviderGates } from "@adrelay/ledger";
import { DeliveryQueue, DeliveryWorker } from "@adrelay/queue";
import { eventually } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { pino } from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createGateMetrics } from "../src/gates/gate-metrics.ts";
import { Gatekeeper } from "../src/gates/gatekeeper.ts";
import { makeRelease } from "../src/jobs/release/release.ts";
import { finishesNone } from "./finishes-none.ts";

const LONG_MS = 3_600_000;
const publisher = publisherIdSchema.parse("beta");
const account = { url: "http://127.0.0.1:9", apiKey: "key", apiKeyHeader: "x-api-key" };

let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startTestRedis();
  redis = new Redis(server.url, { maxRetriesPerRequest: null });
});
afterAll(async () => {
  redis.disconnect();
  await server.dispose();
});

function setup() {
  const partition = randomUUID();
  const queue = new DeliveryQueue({ redis, partition });
  const gates = new ProviderGates({ redis, partition, probeIntervalMs: LONG_MS, recoveryRatePerSecond: 100 });
  const groups = [{ name: "alpha", account, publishers: [publisherIdSchema.parse("alpha"), publisher] }];
  const metrics = createGateMetrics(new Registry(), ["alpha"]);
  const log = pino({ level: "silent" });
  const gatekeeper = new Gatekeeper({ gates, groups, attemptsMax: 10, metrics, log });
  return { partition, queue, gates, release: makeRelease({ gates, gatekeeper, groups, queue }) };
}

test("what a worker left waiting under another name of its account is found by the others", async () => {
  const { partition, queue, gates, release } = setup();
  await release();
  await release();
  const id = adResponseIdSchema.parse(randomUUID());
  const other = new DeliveryWorker({
    redis,
    partition,
    concurrency: 1,
    attemptTimeoutMs: 1000,
    handle: async () => {
      const place = { kind: "by_time", dueAtMs: 1 } as const;
      await gates.park({ account: "beta", member: { publisher, id }, place, notify: undefined });
      return { kind: "again", delayMs: LONG_MS };
    },
    finishWith: finishesNone,
    onError: () => {},
    onUnreadable: () => {},
  });
  const adAckId = adAckIdSchema.parse(randomUUID());
  await queue.enqueue({ v: 1, adResponseId: id, adAckId, publisher, body: "{}", requestId: "r" }, "hash");
  other.start();
  await eventually(async () => expect((await queue.counts()).delayed).toBe(1));
  await other.close();
  await eventually(async () => {
    await release();
    expect(await queue.counts()).toMatchObject({ delayed: 0, waiting: 1 });
  });
});
