/**
 * A worker with a backlog: how often it asks the ledger, and that a job which is out of order is judged by the ledger's own
 * script all the same.
 */
import { randomUUID } from "node:crypto";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import {
  type AdResponseId,
  adAckIdSchema,
  adResponseIdSchema,
  type DeliveryJob,
  publisherIdSchema,
} from "@adrelay/contract";
import { Ledger, Taker } from "@adrelay/ledger";
import { DeliveryQueue } from "@adrelay/queue";
import { eventually, startApp, startScriptedProvider, startTestRedis } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterEach, expect, test } from "vitest";
import { loadScript } from "../../../packages/ledger/src/scripts.ts";

const publisher = publisherIdSchema.parse("default");
const stops: (() => unknown)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

async function setup() {
  const server = await startTestRedis();
  stops.push(() => server.dispose());
  const redis = new Redis(server.url, { maxRetriesPerRequest: null });
  stops.push(() => redis.disconnect());
  const provider = await startScriptedProvider();
  stops.push(() => provider.close());
  const queue = new DeliveryQueue({ redis });
  stops.push(() => queue.close());
  const ledger = new Ledger({ redis, recordRetentionMs: 60_000 });
  const taker = new Taker({
    redis,
    insertion: queue.insertion(),
    takesUnknown: true,
    inTime: (call) => call,
  });
  const take = async (more: Partial<DeliveryJob> = {}) => {
    const job = newJob(more);
    const { adResponseId: id } = job;
    await taker.take({ id, publisher, textHash: "hash", job: queue.jobToInsert(job) });
    return id;
  };
  const begun = watchBegins(server.port);
  const work = async () => {
    const worker = await startApp("worker", {
      REDIS_URL: server.url,
      PROVIDER_URL: provider.url,
      PROVIDER_API_KEY: "key",
      API_KEYS: "key",
      WORKER_OPS_PORT: "0",
      WORKER_CONCURRENCY: "1",
    });
    stops.push(() => worker.stop());
    await eventually(async () => expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0 }));
    return worker;
  };
  return { queue, ledger, provider, take, work, begun: await begun };
}

function newJob(more: Partial<DeliveryJob>): DeliveryJob {
  const adResponseId = adResponseIdSchema.parse(randomUUID());
  return {
    v: 1,
    adResponseId,
    adAckId: adAckIdSchema.parse(randomUUID()),
    publisher,
    body: JSON.stringify({ ad_response_id: adResponseId }),
    requestId: "r",
    ...more,
  };
}

/** The calls of begin.lua as MONITOR tells them, on a bare socket: ioredis mixes its first lines up with answers. */
async function watchBegins(port: number): Promise<readonly string[]> {
  const call = `"evalsha" "${loadScript("begin").sha}"`;
  const calls: string[] = [];
  const socket = connect(port, "127.0.0.1");
  stops.push(() => socket.destroy());
  const watching = Promise.withResolvers<void>();
  createInterface({ input: socket }).on("line", (line) => {
    watching.resolve();
    if (line.includes(call)) {
      calls.push(line);
    }
  });
  socket.write("MONITOR\r\n");
  await watching.promise;
  return calls;
}

function isBegun(begun: readonly string[], id: AdResponseId): boolean {
  return begun.some((call) => call.includes(id.replaceAll("-", "")));
}

test("with a backlog only the first attempt asks the ledger how it stands", async () => {
  const { ledger, provider, take, work, begun } = await setup();
  const ids = await Promise.all(Array.from({ length: 60 }, () => take()));
  const worker = await work();
  expect(provider.posts).toHaveLength(ids.length);
  const states = await Promise.all(ids.map(async (id) => (await ledger.find(id))?.state));
  expect(new Set(states)).toEqual(new Set(["delivered"]));
  expect(ids.filter((id) => isBegun(begun, id))).toEqual(ids.slice(0, 1));
  // A line is written once its job has ended, and then comes through a pipe.
  await eventually(() => {
    expect(worker.logs.filter(({ event }) => event === "attempt")).toHaveLength(ids.length);
  });
});

test("a fetched job that is out of order is judged by the ledger's script", async () => {
  const { ledger, queue, provider, take, work, begun } = await setup();
  await Promise.all(Array.from({ length: 20 }, () => take()));
  const ended = await take();
  await ledger.settle(delivery(ended));
  const unbooked = newJob({});
  await queue.enqueue(unbooked, "hash");
  const theirs = await take({ publisher: publisherIdSchema.parse("theirs") });
  await take();
  const worker = await work();
  expect([ended, unbooked.adResponseId, theirs].map((id) => isBegun(begun, id))).toEqual([true, true, true]);
  expect(provider.posts).toHaveLength(22);
  expect(await ledger.find(unbooked.adResponseId)).toMatchObject({ state: "delivered" });
  await eventually(() => {
    expect(worker.logs.filter(({ event }) => event === "attempt_skipped")).toMatchObject([
      { ad_response_id: ended, why: "delivered" },
      { ad_response_id: theirs, why: "other_publisher" },
    ]);
  });
});

function delivery(id: AdResponseId) {
  return {
    id,
    event: "deliver",
    label: "ok",
    code: "ok",
    providerAckId: undefined,
    durationMs: 1,
    attemptsBefore: 0,
    delayMs: 0,
    isCounted: true,
    notify: undefined,
  } as const;
}
