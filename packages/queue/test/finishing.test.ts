/** Completing jobs within a script of somebody else's: what is left in Redis, and what comes to the job that is fetched. */
import { randomUUID } from "node:crypto";
import { adAckIdSchema, adResponseIdSchema, publisherIdSchema } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { eventually } from "@adrelay/testkit";
import { Worker } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DeliveryQueue, DeliveryWorker, type HandlerOutcome, type QueuedPayload } from "../src/index.ts";
import { jobIdOf, QUEUE_NAME, queuePrefix } from "../src/queue-names.ts";
import { finishAlone } from "./finish-alone.ts";

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

const IDS = Array.from({ length: 6 }, () => adResponseIdSchema.parse(randomUUID()));

async function fill(partition: string): Promise<DeliveryQueue> {
  const queue = new DeliveryQueue({ redis, partition });
  for (const adResponseId of IDS) {
    const adAckId = adAckIdSchema.parse(adResponseId);
    const publisher = publisherIdSchema.parse("acme");
    await queue.enqueue({ v: 1, adResponseId, adAckId, publisher, body: "{}", requestId: "r" }, "hash");
  }
  return queue;
}

function settingsOf(partition: string) {
  return {
    redis,
    partition,
    concurrency: 1,
    attemptTimeoutMs: 1000,
    finishWith: finishAlone(redis),
    onError: () => {},
    onUnreadable: () => {},
  };
}

function startOurs(
  partition: string,
  concurrency: number,
  handle: (queued: QueuedPayload) => Promise<HandlerOutcome>,
) {
  const errors: string[] = [];
  const worker = new DeliveryWorker({
    ...settingsOf(partition),
    concurrency,
    handle: (_job, queued) => handle(queued),
    onError: (error) => errors.push(String(error)),
  });
  worker.start();
  return { worker, errors };
}

const finished = (): Promise<HandlerOutcome> => Promise.resolve({ kind: "finished" });

/** Until all jobs have ended and the worker waits for more: it has taken the marker that wakes it. */
async function untilDone(queue: DeliveryQueue, partition: string): Promise<void> {
  const marker = `${queuePrefix(partition)}:${QUEUE_NAME}:marker`;
  await eventually(async () => {
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0 });
    expect(await redis.exists(marker)).toBe(0);
  });
}

/** All that BullMQ keeps of a queue, without times; its events aside. */
async function remainsOf(partition: string) {
  const prefix = queuePrefix(partition);
  // When workers look for stalled jobs is their own affair.
  const keys = (await redis.keys(`${prefix}:*`)).filter((key) => !key.endsWith(":stalled-check")).toSorted();
  const events = await redis.xrange(`${prefix}:${QUEUE_NAME}:events`, "-", "+");
  const types = await Promise.all(keys.map((key) => redis.type(key)));
  const meta = await redis.hgetall(`${prefix}:${QUEUE_NAME}:meta`);
  return {
    rest: { keys: keys.map((key) => key.slice(prefix.length)), types, meta },
    events: events.map(([, [, event]]) => event),
  };
}

test("jobs that end here leave in Redis what they leave with BullMQ's own worker", async () => {
  const [ours, theirs] = [randomUUID(), randomUUID()];
  const oursQueue = await fill(ours);
  const { worker } = startOurs(ours, 1, finished);
  await untilDone(oursQueue, ours);
  await worker.close();

  const theirsQueue = await fill(theirs);
  const plain = new Worker(QUEUE_NAME, async () => {}, {
    connection: redis,
    prefix: queuePrefix(theirs),
    removeOnComplete: { count: 0 },
  });
  await untilDone(theirsQueue, theirs);
  await plain.close();
  const [remains, theirRemains] = [await remainsOf(ours), await remainsOf(theirs)];
  expect(remains.rest).toEqual(theirRemains.rest);
  expect(theirRemains.events).toContain("completed");
  // BullMQ itself adds the jobs and fetches the first one.
  expect(new Set(remains.events)).toEqual(new Set(["added", "waiting", "active"]));
  expect(remains.events.filter((event) => event === "active")).toHaveLength(1);
  await Promise.all([oursQueue.close(), theirsQueue.close()]);
});

test("a job whose lock is lost is not finished, and those that end with it are", async () => {
  const partition = randomUUID();
  const queue = await fill(partition);
  const [first] = IDS;
  const lost = `${queuePrefix(partition)}:${QUEUE_NAME}:${first === undefined ? "" : jobIdOf(first)}`;
  let begun = 0;
  const all = Promise.withResolvers<void>();
  const { worker, errors } = startOurs(partition, IDS.length, async ({ payload: { key } }) => {
    begun += 1;
    if (begun === IDS.length) {
      await redis.del(`${lost}:lock`);
      all.resolve();
    }
    await all.promise;
    expect(key).toMatch(/:a[\w-]{27}$/);
    return { kind: "finished" };
  });
  await eventually(async () => expect(await queue.counts()).toMatchObject({ waiting: 0, active: 1 }));
  await eventually(() => expect(errors.join()).toContain("Missing lock for job"));
  expect(await redis.exists(lost)).toBe(1);
  await worker.close();
  await queue.close();
});
test("what is seen of a fetched job comes to that job's handler, once", async () => {
  const partition = randomUUID();
  const queue = await fill(partition);
  const runs: [id: string, look: string | undefined][] = [];
  const [, second] = IDS;
  const worker = new DeliveryWorker({
    ...settingsOf(partition),
    handle: async ({ adResponseId }, _queued, look: string | undefined) => {
      runs.push([adResponseId, look]);
      const isFirstRun = runs.filter(([id]) => id === adResponseId).length === 1;
      return adResponseId === second && isFirstRun ? { kind: "again", delayMs: 1 } : { kind: "finished" };
    },
  });
  worker.start();
  await untilDone(queue, partition);
  await eventually(() => expect(runs).toHaveLength(IDS.length + 1));
  expect(runs.slice(0, 2)).toEqual([
    [IDS[0], undefined],
    [second, second],
  ]);
  expect(runs.filter(([id, look]) => look === id)).toHaveLength(runs.length - 2);
  expect(runs.filter(([, look]) => look === undefined)).toHaveLength(2);
  await worker.close();
  await queue.close();
});

test("a job whose booking fails is not finished and runs again", async () => {
  const partition = randomUUID();
  const queue = await fill(partition);
  const [refused] = IDS;
  const booked: string[] = [];
  const worker = new DeliveryWorker({
    ...settingsOf(partition),
    handle: async ({ adResponseId }) => ({ kind: "finished", booking: adResponseId }),
    finishWith: (completion) => {
      const finish = finishAlone(redis)(completion);
      return async (job, booking: string | undefined) => {
        booked.push(booking ?? "");
        if (booked.filter((id) => id === refused).length === 1 && booking === refused) {
          throw new RangeError("no room");
        }
        return finish(job);
      };
    },
  });
  worker.start();
  await eventually(() => expect(booked).toHaveLength(IDS.length + 1), 15_000);
  await untilDone(queue, partition);
  expect(booked.toSorted()).toEqual([...IDS, refused].toSorted());
  await worker.close();
  await queue.close();
});
