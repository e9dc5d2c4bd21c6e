/** What another script queues is what BullMQ would have queued, but for its events: all else that Redis holds is compared. */
import { randomUUID } from "node:crypto";
import { adAckIdSchema, adResponseIdSchema, type DeliveryJob, publisherIdSchema } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { dumpRedis } from "@adrelay/testkit";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { DeliveryQueue, InsertionError } from "../src/index.ts";
import { learnInsertion } from "../src/insertion.ts";

let server: TestRedis;
let redis: Redis;
const stops: (() => Promise<void>)[] = [];

beforeAll(async () => {
  server = await startTestRedis();
  redis = new Redis(server.url, { maxRetriesPerRequest: null });
});
afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()));
});
afterAll(async () => {
  redis.disconnect();
  await server.dispose();
});

/** A queue of its own, and what Redis holds of it; times, which differ, read T. */
async function openSide() {
  const partition = randomUUID();
  const queue = new DeliveryQueue({ redis, partition });
  const bare = new Queue("acknowledgments", { connection: redis, prefix: `{adrelay:${partition}}` });
  stops.push(
    () => queue.close(),
    () => bare.close(),
  );
  await Promise.all([queue.counts(), bare.waitUntilReady()]);
  const held = async () => {
    const lines = (await dumpRedis(server.url)).split("\n").filter((line) => line.includes(partition));
    const timeless = lines.map((line) => line.replaceAll(partition, "P").replaceAll(/\d{13}(-\d+)?/g, "T"));
    const { [`{adrelay:P}:acknowledgments:events`]: events, ...rest } = Object.fromEntries(
      timeless.map(readLine),
    );
    return { events, rest };
  };
  return { queue, bare, held };
}

/** Parsed, as Redis gives the fields of a hash in any order. */
function readLine(line: string): [key: string, value: unknown] {
  const [, key = "", value = ""] = /^(.*?)=(.*)$/.exec(line) ?? [];
  return [key, JSON.parse(value)];
}

type Side = Awaited<ReturnType<typeof openSide>>;

async function insert({ queue }: Side, job: DeliveryJob, textHash: string): Promise<unknown> {
  const { lua, keys, jobPrefix } = queue.insertion();
  const { id, data } = queue.jobToInsert(job);
  const script = `${lua} return queueJob(KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]))`;
  return redis.eval(script, keys.length, ...keys, jobPrefix, id, textHash, data, Date.now());
}

function newJob(): DeliveryJob {
  return {
    v: 1,
    adResponseId: adResponseIdSchema.parse(randomUUID()),
    adAckId: adAckIdSchema.parse(randomUUID()),
    publisher: publisherIdSchema.parse("acme"),
    body: '{"llm_response":"\\u0000 走る 🏃"}',
    requestId: "r",
  };
}

test.each([
  ["an empty queue", async () => {}],
  ["a paused queue", ({ bare }: Side) => bare.pause()],
  ["a queue that runs one job at a time", ({ bare }: Side) => bare.setGlobalConcurrency(1)],
  ["a queue with another job", ({ bare }: Side) => bare.add("other", {}, { jobId: "other" })],
])("a script's insertion leaves %s as BullMQ would", async (_name, prepare) => {
  const [ours, bullmqs] = [await openSide(), await openSide()];
  await Promise.all([prepare(ours), prepare(bullmqs)]);
  const { events: eventsBefore } = await ours.held();
  const [job, other] = [newJob(), newJob()];
  for (const [each, hash] of [
    [job, "hash"],
    [other, "hash-2"],
    [{ ...job, body: "{}" }, "hash-3"],
  ] as const) {
    await bullmqs.queue.enqueue(each, hash);
    expect(await insert(ours, each, hash)).toBe(hash === "hash-3" ? "hash" : hash);
    const [held, bullmqsHeld] = [await ours.held(), await bullmqs.held()];
    expect(held.rest).toEqual(bullmqsHeld.rest);
    expect(held.events).toEqual(eventsBefore);
  }
  expect(JSON.stringify((await bullmqs.held()).events)).toContain("duplicated");
});

test("options that BullMQ adds by another script are refused at the start", async () => {
  const { bare } = await openSide();
  expect(() => learnInsertion(bare, { delay: 1000 })).toThrow(InsertionError);
});
