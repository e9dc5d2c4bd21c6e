/** Completing many jobs in one script: what BullMQ itself would leave in Redis, and faults that stay one job's own. */
import { randomUUID } from "node:crypto";
import { adAckIdSchema, adResponseIdSchema, publisherIdSchema } from "@adrelay/contract";
import { eventually, startTestRedis, type TestRedis } from "@adrelay/testkit";
import { Worker } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DeliveryQueue, DeliveryWorker, type HandlerOutcome, type QueuedPayload } from "../src/index.ts";
import { jobIdOf, QUEUE_NAME, queuePrefix } from "../src/queue-names.ts";

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

function startOurs(
  partition: string,
  concurrency: number,
  handle: (queued: QueuedPayload) => Promise<HandlerOutcome>,
) {
  const errors: string[] = [];
  const worker = new DeliveryWorker({
    redis,
    partition,
    concurrency,
    attemptTimeoutMs: 1000,
    handle: (_job, queued) => handle(queued),
    onError: (error) => errors.push(String(error)),
    onUnreadable: () => {},
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

/** All that BullMQ keeps of a queue, without times. */
async function remainsOf(partition: string): Promise<unknown> {
  const prefix = queuePrefix(partition);
  // When workers look for stalled jobs is their own affair.
  const keys = (await redis.keys(`${prefix}:*`)).filter((key) => !key.endsWith(":stalled-check")).toSorted();
  const events = await redis.xrange(`${prefix}:${QUEUE_NAME}:events`, "-", "+");
  const rest = await Promise.all(keys.map((key) => redis.type(key)));
  const meta = await redis.hgetall(`${prefix}:${QUEUE_NAME}:meta`);
  return {
    keys: keys.map((key) => key.slice(prefix.length)),
    rest,
    meta,
    events: events.map(([, event]) => event),
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
  expect(await remainsOf(ours)).toEqual(await remainsOf(theirs));
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

test("a Redis that forgot the script gets it again", async () => {
  const partition = randomUUID();
  const queue = await fill(partition);
  const { worker, errors } = startOurs(partition, 2, async () => {
    await redis.script("FLUSH");
    return { kind: "finished" };
  });
  await untilDone(queue, partition);
  expect(errors).toEqual([]);
  await worker.close();
  await queue.close();
});
