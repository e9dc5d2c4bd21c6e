/** Guards against an acknowledgment that the books call queued for ever, while the queue has it no more. */
import { randomUUID } from "node:crypto";
import { adAckIdSchema, adResponseIdSchema, publisherIdSchema } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { DeadLetters, Ledger } from "@adrelay/ledger";
import { DeliveryQueue, DeliveryWorker } from "@adrelay/queue";
import { eventually } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeReconcile } from "../src/jobs/reconcile/reconcile.ts";
import { finishesNone } from "./finishes-none.ts";

const LONG_MS = 3_600_000;
const publisher = publisherIdSchema.parse("acme");

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

function setup() {
  const options = { redis, recordRetentionMs: LONG_MS, partition: randomUUID() };
  const [ledger, deadLetters, queue] = [
    new Ledger(options),
    new DeadLetters(options),
    new DeliveryQueue(options),
  ];
  const reconcile = makeReconcile({ ledger, deadLetters, queue, log: pino({ level: "silent" }) });
  /** An acknowledgment that was queued so long ago. */
  const queued = async (ageMs: number) => {
    const id = adResponseIdSchema.parse(randomUUID());
    const adAckId = adAckIdSchema.parse(randomUUID());
    await queue.enqueue({ v: 1, adResponseId: id, adAckId, publisher, body: "{}", requestId: "r" }, "hash");
    await ledger.begin({ id, publisher, textHash: "hash", payload: queue.payloadRef(id) });
    await redis.zincrby(`{adrelay:${options.partition}}:queued`, -ageMs, id.replaceAll("-", ""));
    return id;
  };
  return { ledger, queue, reconcile, queued, partition: options.partition };
}

test("a queued acknowledgment whose text is gone becomes a dead letter that says so", async () => {
  const { ledger, queue, reconcile, queued } = setup();
  const [lost, young, whole] = [await queued(LONG_MS), await queued(0), await queued(LONG_MS)];
  await queue.remove(lost);
  await queue.remove(young);
  await reconcile();
  expect(await ledger.find(lost)).toMatchObject({ state: "dead", deadReason: "payload_lost" });
  expect(await ledger.find(young)).toMatchObject({ state: "queued" });
  expect(await ledger.find(whole)).toMatchObject({ state: "queued" });
});

test("a queued acknowledgment whose job has failed is put back", async () => {
  const { ledger, queue, reconcile, queued, partition } = setup();
  const id = await queued(LONG_MS);
  const worker = new DeliveryWorker({
    redis,
    partition,
    concurrency: 1,
    attemptTimeoutMs: 1000,
    handle: async () => ({ kind: "dead", reason: "http_400" }),
    finishWith: finishesNone,
    onError: () => {},
    onUnreadable: () => {},
  });
  worker.start();
  await eventually(async () => expect((await queue.counts()).failed).toBe(1));
  await worker.close();
  await reconcile();
  expect(await queue.counts()).toMatchObject({ failed: 0, waiting: 1 });
  expect(await ledger.find(id)).toMatchObject({ state: "queued" });
});

test("rounds walk through more entries than one batch holds, and begin anew", async () => {
  const { ledger, queue, reconcile, queued } = setup();
  const youngest = await queued(LONG_MS / 2);
  const oldest = await queued(LONG_MS * 2);
  await Promise.all(Array.from({ length: 148 }, (_, at) => queued(LONG_MS + at)));
  await queue.remove(youngest);
  await reconcile();
  expect(await ledger.find(youngest)).toMatchObject({ state: "queued" });
  await reconcile();
  expect(await ledger.find(youngest)).toMatchObject({ state: "dead" });
  await queue.remove(oldest);
  await reconcile();
  await reconcile();
  expect(await ledger.find(oldest)).toMatchObject({ state: "dead" });
});

test("a job that is put off though its attempt is overdue comes back", async () => {
  const { queue, reconcile, queued, partition } = setup();
  await queued(LONG_MS);
  const worker = new DeliveryWorker({
    redis,
    partition,
    concurrency: 1,
    attemptTimeoutMs: 1000,
    handle: async () => ({ kind: "again", delayMs: LONG_MS }),
    finishWith: finishesNone,
    onError: () => {},
    onUnreadable: () => {},
  });
  worker.start();
  await eventually(async () => expect((await queue.counts()).delayed).toBe(1));
  await worker.close();
  await reconcile();
  expect(await queue.counts()).toMatchObject({ delayed: 0, waiting: 1 });
});
