/**
 * A job that our script adds is the same as one that BullMQ adds, except for events. The whole content of Redis is
 * compared.
 */
import type { DeliveryJob } from "@adrelay/contract";
import { dumpRedis } from "@adrelay/testkit";
import { afterEach, expect, test } from "vitest";
import { JobScriptError, learnQueueJob } from "../src/bullmq/job-scripts.ts";
import { jobIdOf } from "../src/redis/keys.ts";
import { newJob, openTestQueue } from "./queue-fixture.ts";
import { openTestRedis } from "./store-fixture.ts";

const { server, redis } = await openTestRedis({ maxRetriesPerRequest: null });
const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()));
});

/** A separate queue, and what Redis holds of it. Each time is replaced by T, because times differ. */
async function openSide() {
  const fixture = openTestQueue(redis, (stop) => stops.push(stop));
  const { partition, queue, bare } = fixture;
  await Promise.all([queue.depths(), bare.waitUntilReady()]);
  const held = async () => {
    const lines = (await dumpRedis(server.url)).split("\n").filter((line) => line.includes(partition));
    const timeless = lines.map((line) => line.replaceAll(partition, "P").replaceAll(/\d{13}(-\d+)?/g, "T"));
    const { [`{adrelay:P}:acknowledgments:events`]: events, ...rest } = Object.fromEntries(
      timeless.map(readLine),
    );
    return { events, rest };
  };
  return { ...fixture, held };
}

/** Parsed, because Redis returns the fields of a hash in any order. */
function readLine(line: string): [key: string, value: unknown] {
  const [, key = "", value = ""] = /^(.*?)=(.*)$/.exec(line) ?? [];
  return [key, JSON.parse(value)];
}

type Side = Awaited<ReturnType<typeof openSide>>;

async function insert({ queue }: Side, job: DeliveryJob, textHash: string): Promise<unknown> {
  const { lua, keys, jobPrefix } = queue.queueJobScript();
  const script = `${lua} return queueJob(KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]))`;
  const args = [jobPrefix, jobIdOf(job.adResponseId), textHash, JSON.stringify(job), Date.now()];
  return redis.eval(script, keys.length, ...keys, ...args);
}

const BODY = '{"llm_response":"\\u0000 走る 🏃"}';

test.each([
  ["an empty queue", async () => {}],
  ["a paused queue", ({ bare }: Side) => bare.pause()],
  ["a queue that runs one job at a time", ({ bare }: Side) => bare.setGlobalConcurrency(1)],
  ["a queue with another job", ({ bare }: Side) => bare.add("other", {}, { jobId: "other" })],
])("our script leaves %s in the same state as BullMQ", async (_name, prepare) => {
  const [ours, bullmqs] = [await openSide(), await openSide()];
  await Promise.all([prepare(ours), prepare(bullmqs)]);
  const { events: eventsBefore } = await ours.held();
  const [job, other] = [newJob(BODY), newJob(BODY)];
  for (const [each, hash] of [
    [job, "hash"],
    [other, "hash-2"],
    [{ ...job, body: "{}" }, "hash-3"],
  ] as const) {
    await bullmqs.enqueue(each, hash);
    expect(await insert(ours, each, hash)).toBe(hash === "hash-3" ? "hash" : hash);
    const [held, bullmqsHeld] = [await ours.held(), await bullmqs.held()];
    expect(held.rest).toEqual(bullmqsHeld.rest);
    expect(held.events).toEqual(eventsBefore);
  }
  expect(JSON.stringify((await bullmqs.held()).events)).toContain("duplicated");
});

test("options for which BullMQ uses another script are refused at the start", async () => {
  const { bare } = await openSide();
  expect(() => learnQueueJob(bare, { delay: 1000 })).toThrow(JobScriptError);
});
