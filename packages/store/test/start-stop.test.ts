/** The store's long-lived parts keep the contract of start and stop. */
import { randomUUID } from "node:crypto";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { eventually } from "@adrelay/testkit";
import { startStopSuite } from "@adrelay/testkit/start-stop-suite";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { FairTurns } from "../src/bullmq/fair-turns.ts";
import { DeliveryQueue } from "../src/bullmq/queue.ts";
import { QueueWorker } from "../src/bullmq/worker.ts";
import { openStore, type Store } from "../src/index.ts";
import { makeParts, type StoreOptions } from "../src/open-store.ts";
import { COMPLETED, newJob, openTestQueue } from "./queue-fixture.ts";
import { LONG_MS, newId } from "./store-fixture.ts";

let server: TestRedis;
let redis: Redis;
const stops: (() => unknown)[] = [];

beforeAll(async () => {
  server = await startTestRedis();
  redis = new Redis(server.url, { maxRetriesPerRequest: null });
  redis.setMaxListeners(1000);
  // While Redis is away, deliveries stop in another way.
  await eventually(() => expect(redis.status).toBe("ready"));
});
afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()));
});
afterAll(async () => {
  redis.disconnect();
  await server.dispose();
});

function openTestStore(more: Partial<StoreOptions> = {}): Store {
  const store = openStore({
    redis,
    waitingRedis: redis,
    recordRetentionMs: LONG_MS,
    partition: randomUUID(),
    ...more,
  });
  stops.push(() => store.stop());
  return store;
}

function startDeliveries({ deliveries }: Store): void {
  deliveries.start({
    concurrency: 2,
    attemptTimeoutMs: 1000,
    attempt: () => Promise.reject(new TypeError("there are no jobs")),
    onSettled: () => {},
  });
}

/** The class Deliveries, as the store has it. */
startStopSuite(
  "the store's deliveries",
  () => {
    const store = openTestStore();
    return { start: () => startDeliveries(store), stop: () => store.deliveries.stop(), store };
  },
  { isRunning: ({ store }) => store.deliveries.isConsuming },
);

function makeWorker(): QueueWorker {
  return new QueueWorker({
    id: randomUUID(),
    redis,
    queuePrefix: randomUUID(),
    concurrency: 2,
    attemptTimeoutMs: 1000,
    run: async () => COMPLETED,
    complete: () => Promise.reject(new TypeError("there are no jobs")),
    onError: () => {},
  });
}

startStopSuite("the queue's worker", makeWorker, { isRunning: (worker) => worker.isConsuming });

/** The giver of fair turns. */
startStopSuite(
  "fair turns",
  () => {
    const parts = makeParts({ redis, recordRetentionMs: LONG_MS, partition: randomUUID() });
    stops.push(() => parts.queue.stop());
    return new FairTurns({ ...parts, onError: () => {} });
  },
  { isRunning: (turns) => turns.isRunning },
);

/** A queue has nothing to start: it is there from its making until its stop. */
startStopSuite("the queue", () => {
  const queue = new DeliveryQueue({ redis, queuePrefix: randomUUID() });
  return { start: () => queue.depths(), stop: () => queue.stop() };
});

startStopSuite("the store", () => {
  const store = openTestStore();
  return { start: () => store.snapshot(), stop: () => store.stop() };
});

async function countConnections(): Promise<number> {
  return String(await redis.client("LIST"))
    .trim()
    .split("\n").length;
}

test("a worker leaves no connection behind, whether it was started or not", async () => {
  const before = await countConnections();
  const [idle, busy] = [makeWorker(), makeWorker()];
  busy.start();
  await eventually(async () => expect(await countConnections()).toBeGreaterThan(before));
  await Promise.all([idle.stop(), busy.stop()]);
  await eventually(async () => expect(await countConnections()).toBe(before));
});

test("after its stop the queue refuses every call", async () => {
  const queue = new DeliveryQueue({ redis, queuePrefix: randomUUID() });
  await queue.depths();
  await queue.stop();
  await expect(queue.depths()).rejects.toThrow("the queue is stopped");
  await expect(queue.requeue(newId())).rejects.toThrow("the queue is stopped");
  await expect(queue.promote(newId())).rejects.toThrow("the queue is stopped");
  await expect(queue.remove(newId())).rejects.toThrow("the queue is stopped");
});

test("deliveries that stop while Redis is away take no job after its return", async () => {
  const own = await startTestRedis();
  const waitingRedis = new Redis(own.url, { maxRetriesPerRequest: null, retryStrategy: () => 20 });
  waitingRedis.on("error", () => {});
  stops.push(async () => {
    waitingRedis.disconnect();
    await own.dispose();
  });
  const { partition, bare, enqueue, work } = openTestQueue(waitingRedis, (stop) => stops.push(stop));
  bare.on("error", () => {});
  const store = openTestStore({ redis: waitingRedis, waitingRedis, partition });
  startDeliveries(store);
  await eventually(() => expect(store.deliveries.isConsuming).toBe(true));
  await own.crash();
  await eventually(() => expect(waitingRedis.status).not.toBe("ready"));
  await store.deliveries.stop();
  expect(store.deliveries.isConsuming).toBe(false);
  await own.restart();
  // Another worker gets all jobs. The stopped one would have taken some of them.
  const jobs = Array.from({ length: 50 }, () => newJob());
  await Promise.all(jobs.map((job) => enqueue(job, "hash")));
  const taken = new Set<string>();
  work(async ({ adResponseId }) => {
    taken.add(adResponseId);
    return COMPLETED;
  }, 1);
  await eventually(() => expect(taken.size).toBe(jobs.length));
});
