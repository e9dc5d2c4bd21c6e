/** The queue on a real Redis: repeats, retries, dead letters, jobs that can't be read. */
import { once } from "node:events";
import { eventually, pause, startSocketProxy } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterEach, expect, test } from "vitest";
import { DeliveryQueue } from "../src/bullmq/queue.ts";
import type { JobEnd } from "../src/delivery/job-completer.ts";
import type { StoreLogFields } from "../src/store-log.ts";
import { COMPLETED, NO_JOBS, newJob, openTestQueue } from "./queue-fixture.ts";
import { openTestRedis, openTestStore, settlementOf } from "./store-fixture.ts";

const { server, redis } = await openTestRedis({ maxRetriesPerRequest: null });
const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

const setup = () => openTestQueue(redis, (stop) => stops.push(stop));

test("a repeat is the same job, and the first text stays", async () => {
  const { queue, enqueue, work } = setup();
  const job = newJob("first");
  await enqueue(job, "hash-1");
  await Promise.all(Array.from({ length: 20 }, () => enqueue({ ...job, body: "second" }, "hash-2")));
  expect(await queue.depths()).toEqual({ ...NO_JOBS, waiting: 1 });
  const key = queue.payloadKey(job.adResponseId);
  expect(await redis.hget(key, "name")).toBe("hash-1");
  const seen: string[] = [];
  work(async ({ body }, { textHash, payloadKey }) => {
    expect(payloadKey).toBe(key);
    seen.push(`${body} ${textHash}`);
    return COMPLETED;
  });
  await eventually(async () => expect(await queue.depths()).toEqual(NO_JOBS));
  expect(seen).toEqual(["first hash-1"]);
  expect(await redis.exists(key)).toBe(0);
});

test("a body with every kind of character stays unchanged", async () => {
  const { enqueue, work } = setup();
  const body = `{"llm_response":"\\u0000 \\ud800 走る 🏃 \u2028 ${"x".repeat(1_000_000)}"}`;
  const seen: string[] = [];
  await enqueue(newJob(body), "hash");
  work(async (job) => {
    seen.push(job.body);
    return COMPLETED;
  });
  await eventually(() => expect(seen).toEqual([body]));
});

test("a delayed job comes back after its delay, however often", async () => {
  const { enqueue, work } = setup();
  const times: number[] = [];
  await enqueue(newJob(), "hash");
  work(async () => {
    times.push(performance.now());
    return times.length < 4 ? { kind: "delayed", delayMs: 150 } : COMPLETED;
  });
  await eventually(() => expect(times).toHaveLength(4));
  const gaps = times.slice(1).map((time, at) => time - (times[at] ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(140);
});

test("a handler that throws is run again", async () => {
  const { enqueue, work, errors } = setup();
  let runs = 0;
  await enqueue(newJob(), "hash");
  work(async () => {
    runs += 1;
    if (runs === 1) {
      throw new TypeError("the ledger is down");
    }
    return COMPLETED;
  });
  await eventually(() => expect(runs).toBe(2), 10_000);
  expect(errors).toEqual([expect.objectContaining({ message: "the ledger is down" })]);
});

test("a worker whose fetches fail waits between them, and gets jobs later", async () => {
  const { queue, enqueue, work, errors } = setup();
  const ran = Promise.withResolvers<void>();
  await enqueue(newJob(), "hash");
  await redis.replicaof("127.0.0.1", 1);
  try {
    work(async () => {
      ran.resolve();
      return COMPLETED;
    });
    await eventually(() => expect(errors).not.toEqual([]));
    await pause(1000);
    expect(errors.length).toBeLessThan(10);
  } finally {
    await redis.replicaof("NO", "ONE");
  }
  await ran.promise;
  await eventually(async () => expect(await queue.depths()).toEqual(NO_JOBS));
});

test("a dead letter is kept until it is requeued or removed", async () => {
  const { queue, enqueue, work } = setup();
  const job = newJob();
  let isMended = false;
  await enqueue(job, "hash");
  work(async () => (isMended ? COMPLETED : { kind: "failed", reason: "http_400" }));
  await eventually(async () => expect(await queue.depths()).toEqual({ ...NO_JOBS, failed: 1 }));
  await queue.requeue(job.adResponseId);
  await eventually(async () => expect(await queue.depths()).toEqual({ ...NO_JOBS, failed: 1 }));
  isMended = true;
  expect(await queue.requeue(job.adResponseId)).toBe("requeued");
  await eventually(async () => expect(await queue.depths()).toEqual(NO_JOBS));
  expect(await queue.requeue(job.adResponseId)).toBe("gone");
  await queue.remove(job.adResponseId);
});

test("waiting and running jobs are distinguished from failed ones", async () => {
  const { queue, enqueue, work } = setup();
  const job = newJob();
  await enqueue(job, "hash");
  expect(await queue.requeue(job.adResponseId)).toBe("on_its_way");
  const attempt = Promise.withResolvers<JobEnd>();
  work(() => attempt.promise);
  await eventually(async () => expect(await queue.depths()).toEqual({ ...NO_JOBS, active: 1 }));
  expect(await queue.requeue(job.adResponseId)).toBe("held_by_attempt");
  attempt.resolve(COMPLETED);
  await eventually(async () => expect(await queue.requeue(job.adResponseId)).toBe("gone"));
});

test("a requeued job that stalled often before runs again, however often it fails", async () => {
  const { queue, enqueue, work } = setup();
  const job = newJob();
  await enqueue(job, "hash");
  await redis.hset(queue.payloadKey(job.adResponseId), { stc: 7, atm: 9, ats: 9 });
  let runs = 0;
  work(async () => {
    runs += 1;
    return runs % 4 === 0 ? { kind: "failed", reason: "http_400" } : { kind: "delayed", delayMs: 1 };
  });
  for (let replay = 1; replay <= 2; replay += 1) {
    await eventually(async () => expect(await queue.depths()).toEqual({ ...NO_JOBS, failed: 1 }));
    expect(runs).toBe(4 * replay);
    expect(await queue.requeue(job.adResponseId)).toBe("requeued");
  }
  await eventually(() => expect(runs).toBe(12));
});

test("many requeues of one failed job put it back once", async () => {
  const { queue, enqueue, work } = setup();
  const job = newJob();
  await enqueue(job, "hash");
  const worker = work(async () => ({ kind: "failed", reason: "http_400" }));
  await eventually(async () => expect(await queue.depths()).toEqual({ ...NO_JOBS, failed: 1 }));
  await worker.stop();
  const results = await Promise.all(Array.from({ length: 20 }, () => queue.requeue(job.adResponseId)));
  expect(results.filter((result) => result === "requeued")).toHaveLength(1);
  expect(new Set(results)).toEqual(new Set(["requeued", "on_its_way"]));
  expect(await queue.depths()).toEqual({ ...NO_JOBS, waiting: 1 });
});

/** A worker's deliveries, and what they log about jobs that can't be read. */
function startDeliveries({ partition, errors }: ReturnType<typeof setup>) {
  const unreadable: unknown[] = [];
  const seen: string[] = [];
  const ignore = () => {};
  const onError = ({ event, job_id }: StoreLogFields) =>
    event === "job_unreadable" && unreadable.push(job_id);
  const onWarning = (fields: StoreLogFields) => errors.push(fields);
  const log = { debug: ignore, info: ignore, warn: onWarning, error: onError };
  const { deliveries } = openTestStore(redis, { partition, waitingRedis: redis, log });
  stops.push(() => deliveries.stop());
  deliveries.start({
    concurrency: 5,
    attemptTimeoutMs: 1000,
    attempt: async ({ job }) => {
      seen.push(job.requestId);
      const settlement = settlementOf(job.adResponseId, "deliver");
      return { kind: "made", settlement, isProbe: false, trace: { own: undefined, recorded: undefined } };
    },
    onSettled: ignore,
  });
  return { unreadable, seen };
}

test("a job of a newer version waits and is reported, and others go on", async () => {
  const fixture = setup();
  const { queue, bare, enqueue } = fixture;
  await bare.add("hash", { v: 2, what: "of the future" }, { jobId: "newer", attempts: 10 });
  await enqueue(newJob(), "hash");
  const { unreadable, seen } = startDeliveries(fixture);
  await eventually(async () => expect(await queue.depths()).toEqual({ ...NO_JOBS, delayed: 1 }));
  expect(unreadable).toEqual(["newer"]);
  expect(seen).toEqual(["r"]);
});

test("a job whose data aren't JSON waits and is reported like one of a newer version", async () => {
  const fixture = setup();
  const { queue, enqueue, errors } = fixture;
  const [broken, good] = [newJob(), newJob()];
  await enqueue(broken, "hash");
  const key = queue.payloadKey(broken.adResponseId);
  await redis.hset(key, "data", "not json");
  await enqueue(good, "hash");
  const { unreadable } = startDeliveries(fixture);
  await eventually(async () => expect(await queue.depths()).toEqual({ ...NO_JOBS, delayed: 1 }));
  expect(unreadable).toHaveLength(1);
  expect(errors).toEqual([]);
  expect(await redis.hget(key, "data")).toBe("not json");
});

test("a job is brought back early, also one that an attempt was about to delay", async () => {
  const { queue, enqueue, work } = setup();
  const job = newJob();
  await enqueue(job, "hash");
  const whileActive: string[] = [];
  let attempts = 0;
  work(async ({ adResponseId }) => {
    attempts += 1;
    if (attempts > 1) {
      return COMPLETED;
    }
    whileActive.push(await queue.promote(adResponseId));
    return { kind: "delayed", delayMs: 600_000 };
  });
  await eventually(async () => expect(await queue.promote(job.adResponseId)).toBe("promoted"));
  await eventually(async () => expect(await queue.promote(job.adResponseId)).toBe("ended"));
  expect(whileActive).toEqual(["not_yet"]);
  expect(attempts).toBe(2);
});

test("a job that waits can't be brought back earlier, and one that failed not at all", async () => {
  const { queue, enqueue, work } = setup();
  const job = newJob();
  expect(await queue.promote(job.adResponseId)).toBe("ended");
  await enqueue(job, "hash");
  expect(await queue.promote(job.adResponseId)).toBe("not_yet");
  work(async () => ({ kind: "failed", reason: "aged_out" }));
  await eventually(async () => expect(await queue.promote(job.adResponseId)).toBe("ended"));
  expect(await queue.depths()).toEqual({ ...NO_JOBS, failed: 1 });
});

test("a delayed job is on its way", async () => {
  const { queue, enqueue, work } = setup();
  const job = newJob();
  await enqueue(job, "hash");
  work(async () => ({ kind: "delayed", delayMs: 600_000 }));
  await eventually(async () => expect(await queue.depths()).toEqual({ ...NO_JOBS, delayed: 1 }));
  expect(await queue.requeue(job.adResponseId)).toBe("on_its_way");
});

test("a queue whose first question to Redis got no answer works once Redis answers", async () => {
  const proxy = await startSocketProxy(server.port);
  const client = new Redis(`redis://127.0.0.1:${proxy.port}`, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: 200,
  });
  await once(client, "ready");
  proxy.setReplyDelay(600);
  const queue = new DeliveryQueue({ redis: client, queuePrefix: setup().queuePrefix });
  await expect(queue.depths()).rejects.toThrow("timed out");
  proxy.setReplyDelay(0);
  await eventually(async () => expect(await queue.depths()).toEqual(NO_JOBS));
  await queue.stop();
  client.disconnect();
  await proxy.close();
});
