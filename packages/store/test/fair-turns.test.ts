/** Publishers take turns in the queue: nobody's backlog, however it came about, holds up another publisher. */
import { type DeliveryJob, publisherIdSchema } from "@adrelay/contract";
import { eventually } from "@adrelay/testkit";
import { afterEach, expect, test } from "vitest";
import { FairTurns } from "../src/bullmq/fair-turns.ts";
import { jobIdOf } from "../src/redis/keys.ts";
import { COMPLETED, NO_JOBS, newJob, openTestQueue } from "./queue-fixture.ts";
import { openTestRedis } from "./store-fixture.ts";

const { redis } = await openTestRedis({ maxRetriesPerRequest: null });
const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

/** It would hold others up for seconds. */
const BURST = 6000;
/** What may go before an acknowledgment whose publisher has no other one: jobs that are under way, and a turn of each. */
const FEW = 20;

type OnDelivery = (seen: readonly DeliveryJob[]) => Promise<unknown>;

function setup() {
  const fixture = openTestQueue(redis, (stop) => stops.push(stop));
  const { parts, store, work, queue, errors } = fixture;
  const accept = async (publisher: string, count = 1) => {
    const jobs = Array.from({ length: count }, () => jobFor(publisher));
    await Promise.all(jobs.map((job) => store.acknowledgments.accept({ job, textHash: "hash" })));
    return jobs;
  };
  /** Delivers, one by one unless a concurrency is given. `seen` is in the order of the deliveries. */
  const deliver = (onDelivery: OnDelivery = async () => {}, concurrency = 1) => {
    const seen: DeliveryJob[] = [];
    const worker = work(async (job) => {
      seen.push(job);
      await onDelivery(seen);
      return COMPLETED;
    }, concurrency);
    return { seen, worker };
  };
  const giveTurns = () => {
    const turns = new FairTurns({ ...parts, onError: (error) => errors.push(error) });
    stops.push(() => turns.stop());
    turns.start();
    return eventually(async () => expect(await redis.llen(listKey)).toBe(0));
  };
  const [listKey = "", sortedKey = ""] = queue.waitingKeys;
  return { ...fixture, accept, deliver, giveTurns, listKey, sortedKey };
}

function jobFor(publisher: string): DeliveryJob {
  return { ...newJob(), publisher: publisherIdSchema.parse(publisher) };
}

const isOf = (publisher: string) => (job: DeliveryJob) => job.publisher === publisher;
/** The place of a publisher's first delivery among all deliveries. */
const placeOf = (seen: readonly DeliveryJob[], publisher: string) =>
  eventually(() => {
    const place = seen.findIndex(isOf(publisher));
    expect(place).toBeGreaterThanOrEqual(0);
    return place;
  });

test("an acknowledgment is delivered before the burst of another publisher", async () => {
  const { accept, deliver, queue } = setup();
  await accept("big", BURST);
  await accept("small");
  expect(await queue.depths()).toEqual({ ...NO_JOBS, waiting: BURST + 1 });
  const { seen } = deliver();
  expect(await placeOf(seen, "small")).toBeLessThan(FEW);
});

test("an acknowledgment that comes while a burst is delivered is next", async () => {
  const { accept, deliver } = setup();
  await accept("big", BURST);
  const { seen } = deliver(async ({ length }) => length === 500 && accept("small"));
  expect((await placeOf(seen, "small")) - 500).toBeLessThan(FEW);
});

test("two backlogs are delivered in turns", async () => {
  const { accept, deliver } = setup();
  await accept("big", 1000);
  await accept("small", 200);
  const { seen } = deliver();
  await eventually(() => expect(seen.length).toBeGreaterThan(400));
  const first = seen.slice(0, 400);
  expect(first.filter(isOf("small")).length).toBeGreaterThanOrEqual(199);
});

test("a publisher's acknowledgments are delivered in the order of their acceptance, also beside a backlog", async () => {
  const { accept, deliver } = setup();
  const early = await accept("big", 200);
  const late: DeliveryJob[] = [];
  const { seen } = deliver(
    async ({ length }) => length % 2 === 0 && length <= 200 && late.push(...(await accept("big"))),
  );
  await eventually(() => expect(seen).toHaveLength(300));
  expect(seen).toEqual([...early, ...late]);
});

test("a steady stream of one publisher doesn't stop the backlog of another", async () => {
  const { accept, deliver } = setup();
  await accept("big", 300);
  await accept("small", 5);
  const { seen } = deliver(
    async (all) => all.length < 400 && all.at(-1)?.publisher === "small" && accept("small"),
  );
  await eventually(() => expect(seen.length).toBeGreaterThanOrEqual(400));
  const delivered = seen.slice(0, 400).filter(isOf("big")).length;
  expect(delivered).toBeGreaterThan(180);
  expect(delivered).toBeLessThan(220);
});

test("a publisher whose backlog was delivered is not passed by one that begins later", async () => {
  const { accept, deliver } = setup();
  await accept("big", 1000);
  const first = deliver(undefined, 50);
  await eventually(() => expect(first.seen).toHaveLength(1000));
  await first.worker.stop();
  await accept("small", 100);
  await accept("big");
  const { seen } = deliver();
  expect(await placeOf(seen, "big")).toBeLessThan(100);
});

test("delayed jobs whose time has come at once hold up nobody", async () => {
  const { bare, accept, deliver, giveTurns, listKey } = setup();
  const delayed = Array.from({ length: BURST }, () => jobFor("big"));
  await bare.addBulk(
    delayed.map((data) => ({
      name: "hash",
      data,
      opts: { jobId: jobIdOf(data.adResponseId), delay: 1, attempts: 10 },
    })),
  );
  await giveTurns();
  // Each fetch makes a thousand of them wait. The one that takes long lets the turns be given meanwhile.
  const { seen } = deliver(async ({ length }) => {
    if (length === 10) {
      await accept("small");
      await eventually(async () => expect(await redis.llen(listKey)).toBe(0));
    }
  });
  expect((await placeOf(seen, "small")) - 10).toBeLessThan(FEW);
});

test("replayed dead letters hold up nobody", async () => {
  const { queue, work, accept, deliver, giveTurns } = setup();
  const dead = await accept("big", 2000);
  const failing = work(async () => ({ kind: "failed", reason: "http_400" }), 50);
  await eventually(async () => expect(await queue.depths()).toEqual({ ...NO_JOBS, failed: 2000 }));
  await failing.stop();
  await Promise.all(dead.map(({ adResponseId }) => queue.requeue(adResponseId)));
  await accept("small");
  await giveTurns();
  const { seen } = deliver();
  expect(await placeOf(seen, "small")).toBeLessThan(FEW);
});

test("jobs of gateways without turns get theirs, and are delivered once each", async () => {
  const { enqueue, accept, deliver, giveTurns, queue } = setup();
  const old = Array.from({ length: 3000 }, () => jobFor("big"));
  await Promise.all(old.map((job) => enqueue(job, "hash")));
  await Promise.all([accept("small"), giveTurns(), giveTurns()]);
  const { seen } = deliver(undefined, 5);
  expect(await placeOf(seen, "small")).toBeLessThan(FEW);
  await eventually(async () => expect(await queue.depths()).toEqual(NO_JOBS));
  expect(seen).toHaveLength(3001);
  expect(new Set(seen.map(({ adResponseId }) => adResponseId)).size).toBe(3001);
});

test("a short queue stays BullMQ's list, and its jobs need no turns", async () => {
  const { accept, parts, listKey } = setup();
  await accept("big", 50);
  expect(await redis.llen(listKey)).toBe(50);
  expect(await redis.exists(parts.keys.turns)).toBe(0);
  await accept("big");
  expect(await redis.llen(listKey)).toBe(0);
});

test("a job that can't be read waits in turn like the others", async () => {
  const { bare, accept, giveTurns, sortedKey } = setup();
  await accept("big", 100);
  await bare.add("hash", { v: 2, what: "of the future" }, { jobId: "newer" });
  await giveTurns();
  expect(await redis.zscore(sortedKey, "newer")).toBe("1");
});

test("jobs get their turns on a full Redis, too", async () => {
  const { enqueue, giveTurns, queue, errors, listKey } = setup();
  const jobs = Array.from({ length: 100 }, () => jobFor("big"));
  await Promise.all(jobs.map((job) => enqueue(job, "hash")));
  await redis.config("SET", "maxmemory", "1");
  try {
    await giveTurns();
    expect(await redis.llen(listKey)).toBeLessThan(100);
  } finally {
    await redis.config("SET", "maxmemory", "0");
  }
  expect(errors).toEqual([]);
  expect(await queue.depths()).toEqual({ ...NO_JOBS, waiting: 100 });
});

test("large jobs get their turns in several calls, in their order", async () => {
  const { enqueue, accept, parts, queue, listKey, sortedKey } = setup();
  await accept("big", 60);
  const before = await redis.zcard(sortedKey);
  const large = Array.from({ length: 6 }, () => ({ ...jobFor("large"), body: "x".repeat(900_000) }));
  for (const job of large) {
    await enqueue(job, "hash");
  }
  const ids = large.map(({ adResponseId }) => jobIdOf(adResponseId));
  const call = { keys: [...queue.waitingKeys, parts.keys.turns], args: [queue.jobPrefix, 200] };
  for (const [moved, hasMore] of [
    [3, 1],
    [6, 0],
    [6, 0],
  ] as const) {
    expect(await parts.run("bullmq/give-turns", call)).toBe(hasMore);
    expect(await redis.zcard(sortedKey)).toBe(before + moved);
    const inTurn = await redis.zrange(sortedKey, "0", "-1");
    expect(inTurn.filter((id) => ids.includes(id))).toEqual(ids.slice(0, moved));
    expect(await redis.lrange(listKey, 0, -1)).toEqual(ids.slice(moved).reverse());
  }
});

test("a Redis that refuses writes loses no job that was to get its turn", async () => {
  const { enqueue, giveTurns, queue, errors, listKey } = setup();
  const jobs = Array.from({ length: 100 }, () => jobFor("big"));
  await Promise.all(jobs.map((job) => enqueue(job, "hash")));
  await redis.replicaof("127.0.0.1", 1);
  const given = giveTurns();
  try {
    await eventually(() =>
      expect(errors).toContainEqual(
        expect.objectContaining({ message: expect.stringContaining("READONLY") }),
      ),
    );
    expect(await redis.llen(listKey)).toBe(100);
  } finally {
    await redis.replicaof("NO", "ONE");
  }
  await given;
  expect(await queue.depths()).toEqual({ ...NO_JOBS, waiting: 100 });
});
