/** Intake on a real Redis: what is promised while many acknowledgments travel together. */
import { randomUUID } from "node:crypto";
import { adAckIdSchema, adResponseIdSchema, publisherIdSchema } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { Ledger, Taker } from "@adrelay/ledger";
import { DeliveryQueue } from "@adrelay/queue";
import { connectRedis, guardRedis, NO_TRACING } from "@adrelay/service-kit";
import type { Redis } from "ioredis";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type IntakeInput, makeIntake, takeInTime } from "../src/intake/intake.ts";

const log = pino({ level: "silent" });
let server: TestRedis;
let redis: Redis;
let ledger: Ledger;
let queue: DeliveryQueue;
let taker: Taker;

beforeAll(async () => {
  server = await startTestRedis();
  redis = connectRedis(server.url, "request", log);
  await guardRedis(redis, "require", log);
  ledger = new Ledger({ redis, recordRetentionMs: 60_000 });
  queue = new DeliveryQueue({ redis });
  taker = new Taker({ redis, insertion: queue.insertion(), takesUnknown: true, inTime: takeInTime });
});
afterAll(async () => {
  await queue.close();
  redis.disconnect();
  await server.dispose();
});

function newInput(): IntakeInput {
  return {
    id: adResponseIdSchema.parse(randomUUID()),
    ackId: adAckIdSchema.parse(randomUUID()),
    publisher: publisherIdSchema.parse("ours"),
    textHash: "hash",
    body: "{}",
    requestId: "r",
    trace: undefined,
    replyTo: undefined,
  };
}

const take = (input: IntakeInput) =>
  makeIntake({
    taker,
    queue,
    log,
    tracing: NO_TRACING,
    isDurable: () => true,
    onAccepted: () => {},
  })(input);

test("an acknowledgment is taken though Redis has forgotten the scripts", async () => {
  expect(await take(newInput())).toEqual({ kind: "accepted" });
  await redis.script("FLUSH");
  const input = newInput();
  expect(await take(input)).toEqual({ kind: "accepted" });
  expect(await ledger.find(input.id)).toMatchObject({ state: "queued" });
});

test("acknowledgments of one turn are each in the queue and on the books", async () => {
  const before = (await queue.counts()).waiting;
  const inputs = Array.from({ length: 150 }, newInput);
  const taken = await Promise.all([...inputs, ...inputs.slice(0, 3)].map(take));
  expect(taken.map(({ kind }) => kind)).toEqual([
    ...inputs.map(() => "accepted"),
    ...Array.from({ length: 3 }, () => "repeat"),
  ]);
  expect((await queue.counts()).waiting).toBe(before + 150);
  for (const { id } of inputs) {
    const { key, field } = queue.payloadRef(id);
    expect(await redis.hget(key, field)).toBe((await ledger.find(id))?.textHash);
  }
});

test("a job that Redis has no room for is promised to nobody and on no book", async () => {
  await redis.config("SET", "maxmemory", "1");
  const input = newInput();
  expect(await take(input)).toEqual({ kind: "refused", code: "queue_unavailable" });
  await redis.config("SET", "maxmemory", "0");
  expect(await ledger.find(input.id)).toBeUndefined();
  expect(await take(input)).toEqual({ kind: "accepted" });
});

test("a call that never ends is given up within the promised second", async () => {
  const startedAtMs = performance.now();
  await expect(takeInTime(new Promise(() => {}))).rejects.toThrow("in time");
  expect(performance.now() - startedAtMs).toBeLessThan(1000);
});
