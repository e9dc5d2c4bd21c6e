/**
 * A job that our script adds is the same as one that BullMQ adds, except for events and the count of jobs. All else that
 * Redis has is compared.
 */
import { dumpRedis } from "@adrelay/testkit";
import { afterEach, expect, test } from "vitest";
import { newJob, openTestQueue, queueAlone } from "./queue-fixture.ts";
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
    const {
      [`{adrelay:P}:acknowledgments:events`]: events,
      [`{adrelay:P}:acknowledgments:id`]: _count,
      ...rest
    } = Object.fromEntries(timeless.map(readLine));
    return { events, rest };
  };
  return { ...fixture, held };
}

/** Parsed, because the fields of a hash and the members of a job's options come in any order. */
function readLine(line: string): [key: string, value: unknown] {
  const [, key = "", text = ""] = /^(.*?)=(.*)$/.exec(line) ?? [];
  const value: unknown = JSON.parse(text, (name, part) => (name === "opts" ? JSON.parse(part) : part));
  return [key, value];
}

type Side = Awaited<ReturnType<typeof openSide>>;

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
    expect(await queueAlone(ours.parts, each, hash)).toBe(hash === "hash-3" ? "hash" : hash);
    const [held, bullmqsHeld] = [await ours.held(), await bullmqs.held()];
    expect(held.rest).toEqual(bullmqsHeld.rest);
    expect(held.events).toEqual(eventsBefore);
  }
  expect(JSON.stringify((await bullmqs.held()).events)).toContain("duplicated");
});
