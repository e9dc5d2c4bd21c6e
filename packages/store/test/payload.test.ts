/** Bodies on a real Redis: large ones stay there until an attempt loads them, whatever has fetched their job. */
import { eventually } from "@adrelay/testkit";
import { afterEach, expect, test } from "vitest";
import type { FetchedJob } from "../src/bullmq/worker.ts";
import { PayloadLoader, readFetched } from "../src/delivery/payload.ts";
import { COMPLETED, newJob, openTestQueue } from "./queue-fixture.ts";
import { openTestRedis } from "./store-fixture.ts";

const LARGE = "x".repeat(100_000);

const { redis } = await openTestRedis({ maxRetriesPerRequest: null });
const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

const setup = () => openTestQueue(redis, (stop) => stops.push(stop));

const read = ({ data, payloadKey }: FetchedJob) => readFetched(data, payloadKey, new PayloadLoader(redis));

test("a large body stays in Redis, whatever step fetches its job", async () => {
  const { enqueue, work } = setup();
  const jobs = [newJob(LARGE), newJob(LARGE), newJob(LARGE)];
  for (const job of jobs) {
    await enqueue(job, "hash");
  }
  const sizes: number[] = [];
  const bodies: string[] = [];
  // With one job at a time, the second one is fetched when the first one is delayed, the third one when the second one
  // is completed.
  work(async ({ body }, fetched) => {
    sizes.push(JSON.stringify(fetched.data).length);
    bodies.push(body);
    return bodies.length === 1 ? { kind: "delayed", delayMs: 100 } : COMPLETED;
  }, 1);
  await eventually(() => expect(bodies).toEqual([LARGE, LARGE, LARGE, LARGE]));
  expect(Math.max(...sizes)).toBeLessThan(400);
});

test("a fetched job without its body has its entry and all its other members", async () => {
  const { store, work } = setup();
  const jobs = [newJob(LARGE), newJob(LARGE)].map((job) => ({ ...job, replyTo: "channel" }));
  for (const job of jobs) {
    await store.acknowledgments.accept({ job, textHash: "hash" });
  }
  const seen: FetchedJob[] = [];
  work(async (_job, fetched) => {
    seen.push(fetched);
    return COMPLETED;
  }, 1);
  await eventually(() => expect(seen).toHaveLength(2));
  const heads = seen.map((fetched) => read(fetched));
  expect(heads.map((head) => head?.job)).toEqual(jobs.map((job) => ({ ...job, body: "" })));
  expect(heads.map((head) => head?.payload.bytesToLoad)).toEqual([LARGE.length, LARGE.length]);
  expect(seen[1]?.prefetched?.begun).toMatchObject({ kind: "queued" });
});

test("a small body comes with its job", async () => {
  const { enqueue, work } = setup();
  await enqueue(newJob("x".repeat(4000)), "hash");
  const loads: (number | undefined)[] = [];
  work(async (_job, fetched) => {
    loads.push(read(fetched)?.payload.bytesToLoad);
    return COMPLETED;
  });
  await eventually(() => expect(loads).toEqual([0]));
});

test.each([
  ["the end of a body, as a job is stored", `","requestId":"${LARGE}`],
  ["quotation marks and backslashes", `\\"\\\\"\\","requestId":"\\"${LARGE}`],
  ["a lone surrogate, a NUL and other characters", `\ud800\u0000 走る 🏃 \u2028${LARGE}`],
])("a large body arrives unchanged with %s in it", async (_what, body) => {
  const { enqueue, work } = setup();
  await enqueue(newJob(body), "hash");
  const seen: [string, boolean][] = [];
  work(async (job, fetched) => {
    seen.push([job.body, read(fetched)?.payload.bytesToLoad === 0]);
    return COMPLETED;
  });
  await eventually(() => expect(seen).toHaveLength(1));
  // What the provider gets is UTF-8, which has no lone surrogates.
  expect(seen).toEqual([[Buffer.from(body).toString(), false]]);
});

test("a body that an erasure took out of its job while an attempt is under way can't be loaded", async () => {
  const { store, work } = setup();
  const job = newJob(LARGE);
  await store.acknowledgments.accept({ job, textHash: "hash" });
  const loaded: unknown[] = [];
  work(async ({ body }, fetched) => {
    loaded.push(body);
    await store.erasures.erase(job.adResponseId, { by: "alice", reason: "the user asked" });
    loaded.push(await read(fetched)?.payload.load());
    return { kind: "completed", finalAttempt: undefined };
  });
  await eventually(() => expect(loaded).toEqual([LARGE, undefined]));
});

test("a body whose job is gone can't be loaded", async () => {
  const { enqueue, work } = setup();
  await enqueue(newJob(LARGE), "hash");
  const loaded: unknown[] = [];
  work(async (_job, fetched) => {
    await redis.del(fetched.payloadKey);
    loaded.push(await read(fetched)?.payload.load());
    return { kind: "completed", finalAttempt: undefined };
  });
  await eventually(() => expect(loaded).toEqual([undefined]));
});
