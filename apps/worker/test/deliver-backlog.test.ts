/**
 * A worker with a backlog: how often it asks the ledger, and that a job which is out of order is judged by the ledger's own
 * script all the same.
 */
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { type AdResponseId, publisherIdSchema } from "@adrelay/contract";
import { eventually } from "@adrelay/testkit";
import { afterEach, expect, test } from "vitest";
import { loadScript } from "../../../packages/ledger/src/scripts.ts";
import { newJob, openWorkerFixture } from "./worker-fixture.ts";

const stops: (() => unknown)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

async function setup() {
  const { server, queue, startWorker, ...parts } = await openWorkerFixture((stop) => stops.push(stop));
  const begun = await watchBegins(server.port);
  const work = async () => {
    const worker = await startWorker(1);
    await eventually(async () => expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0 }));
    return worker;
  };
  return { ...parts, queue, work, begun };
}

/** The calls of begin.lua as MONITOR tells them, on a bare socket: ioredis mixes its first lines up with answers. */
async function watchBegins(port: number): Promise<readonly string[]> {
  const { sha, source } = loadScript("begin");
  const title = source.slice(0, source.indexOf("\n"));
  // A connection's first call sends the source.
  const starts = [`"evalsha" "${sha}"`, `"eval" "${title}`];
  const calls: string[] = [];
  const socket = connect(port, "127.0.0.1");
  stops.push(() => socket.destroy());
  const watching = Promise.withResolvers<void>();
  createInterface({ input: socket }).on("line", (line) => {
    watching.resolve();
    if (starts.some((start) => line.includes(start))) {
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
  const unbooked = newJob();
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
