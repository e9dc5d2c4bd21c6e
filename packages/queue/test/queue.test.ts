/** The queue on a real Redis: repeats, retries, dead letters, what can't be read. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { adAckIdSchema, adResponseIdSchema, type DeliveryJob, publisherIdSchema } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { eventually, pause, startSocketProxy } from "@adrelay/testkit";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { DeliveryQueue, DeliveryWorker, type HandlerOutcome, type QueuedPayload } from "../src/index.ts";
import { finishAlone } from "./finish-alone.ts";

let server: TestRedis;
let redis: Redis;
const stops: (() => Promise<void>)[] = [];

beforeAll(async () => {
  server = await startTestRedis();
  redis = new Redis(server.url, { maxRetriesPerRequest: null });
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});
afterAll(async () => {
  redis.disconnect();
  await server.dispose();
});

type Handle = (job: DeliveryJob, queued: QueuedPayload) => Promise<HandlerOutcome>;

function setup() {
  const partition = randomUUID();
  const queue = new DeliveryQueue({ redis, partition });
  stops.push(() => queue.close());
  const unreadable: string[] = [];
  const errors: unknown[] = [];
  const work = (handle: Handle) => {
    const worker = new DeliveryWorker({
      redis,
      partition,
      concurrency: 5,
      attemptTimeoutMs: 1000,
      handle,
      finishWith: finishAlone(redis),
      onError: (error) => errors.push(error),
      onUnreadable: (id) => unreadable.push(id),
    });
    stops.push(() => worker.close());
    worker.start();
    return worker;
  };
  return { queue, partition, work, unreadable, errors };
}

function newJob(body = "{}"): DeliveryJob {
  return {
    v: 1,
    adResponseId: adResponseIdSchema.parse(randomUUID()),
    adAckId: adAckIdSchema.parse(randomUUID()),
    publisher: publisherIdSchema.parse("acme"),
    body,
    requestId: "r",
  };
}

const NOTHING = { waiting: 0, active: 0, delayed: 0, failed: 0 };

test("a repeat is the same job, and the first text stays", async () => {
  const { queue, work } = setup();
  const job = newJob("first");
  await queue.enqueue(job, "hash-1");
  await Promise.all(Array.from({ length: 20 }, () => queue.enqueue({ ...job, body: "second" }, "hash-2")));
  expect(await queue.counts()).toEqual({ ...NOTHING, waiting: 1 });
  const { key, field } = queue.payloadRef(job.adResponseId);
  expect(await redis.hget(key, field)).toBe("hash-1");
  const seen: string[] = [];
  work(async ({ body }, { textHash, payload }) => {
    expect(payload).toEqual(queue.payloadRef(job.adResponseId));
    seen.push(`${body} ${textHash}`);
    return { kind: "finished" };
  });
  await eventually(async () => expect(await queue.counts()).toEqual(NOTHING));
  expect(seen).toEqual(["first hash-1"]);
  expect(await redis.exists(key)).toBe(0);
});

test("a body with every kind of character comes out as it went in", async () => {
  const { queue, work } = setup();
  const body = `{"llm_response":"\\u0000 \\ud800 走る 🏃 \u2028 ${"x".repeat(1_000_000)}"}`;
  const seen: string[] = [];
  await queue.enqueue(newJob(body), "hash");
  work(async (job) => {
    seen.push(job.body);
    return { kind: "finished" };
  });
  await eventually(() => expect(seen).toEqual([body]));
});

test("again comes back after its delay, however often", async () => {
  const { queue, work } = setup();
  const times: number[] = [];
  await queue.enqueue(newJob(), "hash");
  work(async () => {
    times.push(performance.now());
    return times.length < 4 ? { kind: "again", delayMs: 150 } : { kind: "finished" };
  });
  await eventually(() => expect(times).toHaveLength(4));
  const gaps = times.slice(1).map((time, at) => time - (times[at] ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(140);
});

test("a handler that throws is run again", async () => {
  const { queue, work, errors } = setup();
  let runs = 0;
  await queue.enqueue(newJob(), "hash");
  work(async () => {
    runs += 1;
    if (runs === 1) {
      throw new TypeError("the ledger is away");
    }
    return { kind: "finished" };
  });
  await eventually(() => expect(runs).toBe(2), 10_000);
  expect(errors).toEqual([expect.objectContaining({ message: "the ledger is away" })]);
});

test("a worker that Redis hands out no jobs asks again without haste, and gets them later", async () => {
  const { queue, work, errors } = setup();
  const ran = Promise.withResolvers<void>();
  await queue.enqueue(newJob(), "hash");
  await redis.config("SET", "min-replicas-to-write", "1");
  try {
    work(async () => {
      ran.resolve();
      return { kind: "finished" };
    });
    await eventually(() => expect(errors).not.toEqual([]));
    await pause(1000);
    expect(errors.length).toBeLessThan(10);
  } finally {
    await redis.config("SET", "min-replicas-to-write", "0");
  }
  await ran.promise;
  await eventually(async () => expect(await queue.counts()).toEqual(NOTHING));
});

test("a dead letter is kept until it is requeued or removed", async () => {
  const { queue, work } = setup();
  const job = newJob();
  let isMended = false;
  await queue.enqueue(job, "hash");
  work(async () => (isMended ? { kind: "finished" } : { kind: "dead", reason: "http_400" }));
  await eventually(async () => expect(await queue.counts()).toEqual({ ...NOTHING, failed: 1 }));
  await queue.requeue(job.adResponseId);
  await eventually(async () => expect(await queue.counts()).toEqual({ ...NOTHING, failed: 1 }));
  isMended = true;
  expect(await queue.requeue(job.adResponseId)).toBe("requeued");
  await eventually(async () => expect(await queue.counts()).toEqual(NOTHING));
  expect(await queue.requeue(job.adResponseId)).toBe("gone");
  await queue.remove(job.adResponseId);
});

test("a job that waits, or that an attempt holds, is told apart from one that has failed", async () => {
  const { queue, work } = setup();
  const job = newJob();
  await queue.enqueue(job, "hash");
  expect(await queue.requeue(job.adResponseId)).toBe("on_its_way");
  const attempt = Promise.withResolvers<HandlerOutcome>();
  work(() => attempt.promise);
  await eventually(async () => expect(await queue.counts()).toEqual({ ...NOTHING, active: 1 }));
  expect(await queue.requeue(job.adResponseId)).toBe("held_by_attempt");
  attempt.resolve({ kind: "finished" });
  await eventually(async () => expect(await queue.requeue(job.adResponseId)).toBe("gone"));
});

test("a requeued job that stalled often before runs again, however often it fails", async () => {
  const { queue, work } = setup();
  const job = newJob();
  await queue.enqueue(job, "hash");
  await redis.hset(queue.payloadRef(job.adResponseId).key, { stc: 7, atm: 9, ats: 9 });
  let runs = 0;
  work(async () => {
    runs += 1;
    return runs % 4 === 0 ? { kind: "dead", reason: "http_400" } : { kind: "again", delayMs: 1 };
  });
  for (let replay = 1; replay <= 2; replay += 1) {
    await eventually(async () => expect(await queue.counts()).toEqual({ ...NOTHING, failed: 1 }));
    expect(runs).toBe(4 * replay);
    expect(await queue.requeue(job.adResponseId)).toBe("requeued");
  }
  await eventually(() => expect(runs).toBe(12));
});

test("many requeues of one failed job put it back once", async () => {
  const { queue, work } = setup();
  const job = newJob();
  await queue.enqueue(job, "hash");
  const worker = work(async () => ({ kind: "dead", reason: "http_400" }));
  await eventually(async () => expect(await queue.counts()).toEqual({ ...NOTHING, failed: 1 }));
  await worker.close();
  const results = await Promise.all(Array.from({ length: 20 }, () => queue.requeue(job.adResponseId)));
  expect(results.filter((result) => result === "requeued")).toHaveLength(1);
  expect(new Set(results)).toEqual(new Set(["requeued", "on_its_way"]));
  expect(await queue.counts()).toEqual({ ...NOTHING, waiting: 1 });
});

test("a job of a newer version waits and is reported, and others go on", async () => {
  const { queue, partition, work, unreadable } = setup();
  const raw = new Queue("acknowledgments", { connection: redis, prefix: `{adrelay:${partition}}` });
  stops.push(() => raw.close());
  await raw.add("hash", { v: 2, what: "of the future" }, { jobId: "newer", attempts: 10 });
  await queue.enqueue(newJob(), "hash");
  const seen: string[] = [];
  work(async ({ requestId }) => {
    seen.push(requestId);
    return { kind: "finished" };
  });
  await eventually(async () => expect(await queue.counts()).toEqual({ ...NOTHING, delayed: 1 }));
  expect(unreadable).toEqual(["newer"]);
  expect(seen).toEqual(["r"]);
});

test("a job whose data aren't JSON waits and is reported like one of a newer version", async () => {
  const { queue, work, unreadable, errors } = setup();
  const [broken, good] = [newJob(), newJob()];
  await queue.enqueue(broken, "hash");
  const { key } = queue.payloadRef(broken.adResponseId);
  await redis.hset(key, "data", "not json");
  await queue.enqueue(good, "hash");
  work(async () => ({ kind: "finished" }));
  await eventually(async () => expect(await queue.counts()).toEqual({ ...NOTHING, delayed: 1 }));
  expect(unreadable).toHaveLength(1);
  expect(errors).toEqual([]);
  expect(await redis.hget(key, "data")).toBe("not json");
});

test("a job is brought back early, also one that an attempt was about to put off", async () => {
  const { queue, work } = setup();
  const job = newJob();
  await queue.enqueue(job, "hash");
  const whileActive: string[] = [];
  let attempts = 0;
  work(async ({ adResponseId }) => {
    attempts += 1;
    if (attempts > 1) {
      return { kind: "finished" };
    }
    whileActive.push(await queue.promote(adResponseId));
    return { kind: "again", delayMs: 600_000 };
  });
  await eventually(async () => expect(await queue.promote(job.adResponseId)).toBe("promoted"));
  await eventually(async () => expect(await queue.promote(job.adResponseId)).toBe("ended"));
  expect(whileActive).toEqual(["not_yet"]);
  expect(attempts).toBe(2);
});

test("a job that waits can't be brought back earlier, and one that failed not at all", async () => {
  const { queue, work } = setup();
  const job = newJob();
  expect(await queue.promote(job.adResponseId)).toBe("ended");
  await queue.enqueue(job, "hash");
  expect(await queue.promote(job.adResponseId)).toBe("not_yet");
  work(async () => ({ kind: "dead", reason: "aged_out" }));
  await eventually(async () => expect(await queue.promote(job.adResponseId)).toBe("ended"));
  expect(await queue.counts()).toEqual({ ...NOTHING, failed: 1 });
});

test("a job that was put off is on its way", async () => {
  const { queue, work } = setup();
  const job = newJob();
  await queue.enqueue(job, "hash");
  work(async () => ({ kind: "again", delayMs: 600_000 }));
  await eventually(async () => expect(await queue.counts()).toEqual({ ...NOTHING, delayed: 1 }));
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
  const queue = new DeliveryQueue({ redis: client, partition: randomUUID() });
  await expect(queue.enqueue(newJob(), "hash")).rejects.toThrow("timed out");
  proxy.setReplyDelay(0);
  await eventually(() => queue.enqueue(newJob(), "hash"));
  expect(await queue.counts()).toMatchObject({ waiting: 1 });
  await queue.close();
  client.disconnect();
  await proxy.close();
});
