/** BullMQ's worker with our script to complete jobs: what is left in Redis, and what comes with the fetched job. */
import type { AdResponseId } from "@adrelay/contract";
import { eventually } from "@adrelay/testkit";
import { Worker } from "bullmq";
import { afterEach, expect, test } from "vitest";
import { QUEUE_NAME } from "../src/redis/keys.ts";
import { COMPLETED, type Handle, openTestQueue } from "./queue-fixture.ts";
import { jobOf, newId, openTestRedis } from "./store-fixture.ts";

const { redis } = await openTestRedis({ maxRetriesPerRequest: null });
const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

const IDS = Array.from({ length: 6 }, () => newId());

async function openFilled() {
  const fixture = openTestQueue(redis, (stop) => stops.push(stop));
  for (const id of IDS) {
    await fixture.enqueue(jobOf(id), "hash");
  }
  return fixture;
}

type Fixture = Awaited<ReturnType<typeof openFilled>>;

const complete: Handle = async () => COMPLETED;

/** Waits until all jobs have ended and the worker waits for more, which is when it has removed BullMQ's marker. */
async function untilDone({ queue, queuePrefix }: Fixture): Promise<void> {
  const marker = `${queuePrefix}:${QUEUE_NAME}:marker`;
  await eventually(async () => {
    expect(await queue.depths()).toMatchObject({ waiting: 0, active: 0 });
    expect(await redis.exists(marker)).toBe(0);
  });
}

/** All that BullMQ keeps of a queue, without times; its events apart. */
async function remainsOf({ queuePrefix }: Fixture) {
  // Each worker chooses when it looks for stalled jobs.
  const keys = (await redis.keys(`${queuePrefix}:*`))
    .filter((key) => !key.endsWith(":stalled-check"))
    .toSorted();
  const events = await redis.xrange(`${queuePrefix}:${QUEUE_NAME}:events`, "-", "+");
  const types = await Promise.all(keys.map((key) => redis.type(key)));
  const meta = await redis.hgetall(`${queuePrefix}:${QUEUE_NAME}:meta`);
  return {
    rest: { keys: keys.map((key) => key.slice(queuePrefix.length)), types, meta },
    events: events.map(([, [, event]]) => event),
  };
}

test("completed jobs leave the same in Redis as with BullMQ's own worker", async () => {
  const [ours, theirs] = [await openFilled(), await openFilled()];
  const worker = ours.work(complete, 1);
  await untilDone(ours);
  await worker.stop();

  const plain = new Worker(QUEUE_NAME, async () => {}, {
    connection: redis,
    prefix: theirs.queuePrefix,
    removeOnComplete: { count: 0 },
  });
  await untilDone(theirs);
  await plain.close();
  const [remains, theirRemains] = [await remainsOf(ours), await remainsOf(theirs)];
  expect(remains.rest).toEqual(theirRemains.rest);
  expect(theirRemains.events).toContain("completed");
  // BullMQ itself adds the jobs and fetches the first one.
  expect(new Set(remains.events)).toEqual(new Set(["added", "waiting", "active"]));
  expect(remains.events.filter((event) => event === "active")).toHaveLength(1);
});

test("a job without its lock is not completed, but jobs of the same call are", async () => {
  const fixture = await openFilled();
  const { queue, errors } = fixture;
  const lost = queue.payloadKey(IDS[0] ?? newId());
  let begun = 0;
  const all = Promise.withResolvers<void>();
  fixture.work(async (_job, { payloadKey }) => {
    begun += 1;
    if (begun === IDS.length) {
      await redis.del(`${lost}:lock`);
      all.resolve();
    }
    await all.promise;
    expect(payloadKey).toMatch(/:a[\w-]{27}$/);
    return COMPLETED;
  }, IDS.length);
  await eventually(async () => expect(await queue.depths()).toMatchObject({ waiting: 0, active: 1 }));
  await eventually(() => expect(errors.join()).toContain("Missing lock for job"));
  expect(await redis.exists(lost)).toBe(1);
});

test("a prefetched entry reaches the handler of its job, once", async () => {
  const fixture = await openFilled();
  for (const id of IDS) {
    await fixture.starter.begin({
      job: jobOf(id),
      textHash: "hash",
      payloadKey: fixture.queue.payloadKey(id),
      prefetched: undefined,
    });
  }
  const runs: [id: AdResponseId, isPrefetched: boolean][] = [];
  const [, second] = IDS;
  fixture.work(async ({ adResponseId: id }, { prefetched }) => {
    runs.push([id, prefetched !== undefined]);
    const isFirstRun = runs.filter(([of]) => of === id).length === 1;
    return id === second && isFirstRun ? { kind: "delayed", delayMs: 1 } : COMPLETED;
  }, 1);
  await untilDone(fixture);
  await eventually(() => expect(runs).toHaveLength(IDS.length + 1));
  expect(runs.slice(0, 2)).toEqual([
    [IDS[0], false],
    [second, true],
  ]);
  // The first job was fetched by BullMQ itself, and so was the one after the delayed job.
  expect(runs.filter(([, isPrefetched]) => isPrefetched)).toHaveLength(runs.length - 2);
});

test("a job whose completion fails is not completed and runs again", async () => {
  const fixture = await openFilled();
  const [refused] = IDS;
  const { completer } = fixture;
  const completed: string[] = [];
  const completeOf = completer.complete.bind(completer);
  completer.complete = async (job, finalAttempt, script) => {
    completed.push(job.id);
    if (job.id === jobIdOfFirst && completed.filter((id) => id === job.id).length === 1) {
      throw new RangeError("no room");
    }
    return completeOf(job, finalAttempt, script);
  };
  const jobIdOfFirst = fixture.queue
    .payloadKey(refused ?? newId())
    .split(":")
    .at(-1);
  fixture.work(complete, 1);
  await eventually(() => expect(completed).toHaveLength(IDS.length + 1), 15_000);
  await untilDone(fixture);
});
