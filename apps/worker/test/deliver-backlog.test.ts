/** A worker with a backlog reads the ledger only for the first attempt, or if a job doesn't match its entry. */
import { connect } from "node:net";
import { createInterface } from "node:readline";
import type { AdResponseId } from "@adrelay/contract";
import { eventually } from "@adrelay/testkit";
import { afterEach, expect, test } from "vitest";
import { ScriptLibrary } from "../../../packages/store/src/redis/scripts.ts";
import { openWorkerFixture } from "./worker-fixture.ts";

const stops: (() => unknown)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

async function setup() {
  const { server, store, startWorker, ...parts } = await openWorkerFixture((stop) => stops.push(stop));
  const begun = await watchBegins(server.port);
  const work = async () => {
    const worker = await startWorker(1);
    await eventually(async () => expect(await store.queueDepths()).toMatchObject({ waiting: 0, active: 0 }));
    return worker;
  };
  return { ...parts, work, begun };
}

/** The calls of delivery/begin.lua as MONITOR shows them, on a bare socket: ioredis confuses its first lines with replies. */
async function watchBegins(port: number): Promise<readonly string[]> {
  const { sha, source } = new ScriptLibrary().load("delivery/begin");
  const title = source.slice(0, source.indexOf("\n"));
  // The first call on a connection sends the source.
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

test("with a backlog only the first attempt reads the ledger separately", async () => {
  const { find, provider, accept, work, begun } = await setup();
  const ids = await Promise.all(Array.from({ length: 60 }, () => accept()));
  const worker = await work();
  expect(provider.posts).toHaveLength(ids.length);
  const states = await Promise.all(ids.map(async (id) => (await find(id))?.state));
  expect(new Set(states)).toEqual(new Set(["delivered"]));
  await eventually(() => expect(ids.filter((id) => isBegun(begun, id))).toEqual(ids.slice(0, 1)));
  // A line is written once its job has ended, and then comes through a pipe.
  await eventually(() => {
    expect(worker.logs.filter(({ event }) => event === "attempt")).toHaveLength(ids.length);
  });
});

test("a fetched job that doesn't match its entry is checked in the ledger", async () => {
  const { redis, find, provider, accept, work, begun } = await setup();
  await Promise.all(Array.from({ length: 20 }, () => accept()));
  const entryKey = (id: AdResponseId) => `{adrelay:0}:e:${id.replaceAll("-", "")}`;
  const ended = await accept();
  await redis.hset(entryKey(ended), "s", "delivered");
  const unbooked = await accept();
  await redis.del(entryKey(unbooked));
  const theirs = await accept();
  await redis.hset(entryKey(theirs), "p", "theirs");
  await accept();
  const worker = await work();
  await eventually(() =>
    expect([ended, unbooked, theirs].map((id) => isBegun(begun, id))).toEqual([true, true, true]),
  );
  expect(provider.posts).toHaveLength(22);
  expect(await find(unbooked)).toMatchObject({ state: "delivered" });
  await eventually(() => {
    expect(worker.logs.filter(({ event }) => event === "attempt_skipped")).toMatchObject([
      { ad_response_id: ended, why: "delivered" },
      { ad_response_id: theirs, why: "other_publisher" },
    ]);
  });
});
