/** Rewrites of a real Redis' files. They guard against texts that stay on its disk, and against a rewrite by each worker. */
import { eventually } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { Rewrites } from "../src/maintenance/rewrites.ts";
import { openTestRedis, openTestStore } from "./store-fixture.ts";

const { server, redis } = await openTestRedis();
redis.on("error", () => {});

const NEVER = 0;
const DAY_MS = 86_400_000;
const MINUTES_MS = 300_000;
const ORDER = { by: "alice 127.0.0.1", reason: "the user asked" } as const;

function setup(connection = redis) {
  const fixture = openTestStore(connection);
  const events: string[] = [];
  const log = (line: { readonly event: string }) => events.push(line.event);
  const rewrites = new Rewrites({ ...fixture.parts, log: { debug: log, info: log, warn: log, error: log } });
  const key = fixture.parts.keys.rewrites;
  /** As a worker asks that takes no further step. */
  const plan = () =>
    fixture.parts.run("maintenance/plan-rewrite", { keys: [key], args: [NEVER, 5000, MINUTES_MS] });
  const moveBack = async (ms: number, ...fields: string[]) => {
    for (const field of fields) {
      await redis.hset(key, field, Number(await redis.hget(key, field)) - ms);
    }
  };
  return { ...fixture, rewrites, events, record: key, plan, moveBack };
}

async function rewriteCount(): Promise<number> {
  return Number(/^aof_rewrites:(\d+)/m.exec(await redis.info())?.[1]);
}

test("a rewrite that an operator asked for is started once, and its end is booked", async () => {
  const { rewrites, events } = setup();
  const before = await rewriteCount();
  await rewrites.runRound(NEVER);
  expect(events).toEqual([]);
  await rewrites.request(ORDER);
  await Promise.all(Array.from({ length: 5 }, () => rewrites.runRound(NEVER)));
  await eventually(async () => {
    await rewrites.runRound(NEVER);
    expect((await rewrites.load()).finishedMs).toBeDefined();
  });
  expect(events).toEqual(["rewrite_started", "rewrite_finished"]);
  expect(await rewriteCount()).toBe(before + 1);
});

test("however often operators ask, no third rewrite starts for them within five minutes", async () => {
  const { rewrites, events, moveBack } = setup();
  for (const finished of [1, 2]) {
    await rewrites.request(ORDER);
    await eventually(async () => {
      await rewrites.runRound(NEVER);
      expect(events.filter((event) => event === "rewrite_finished")).toHaveLength(finished);
    });
    await moveBack(10_000, "started", "begun", "finished");
  }
  await rewrites.request(ORDER);
  await rewrites.runRound(NEVER);
  expect(events).toHaveLength(4);
  await moveBack(MINUTES_MS, "before");
  await rewrites.runRound(NEVER);
  expect(events.slice(4)).toEqual(["rewrite_started"]);
});

test("a rewrite that is due or failed starts also after two that operators asked for", async () => {
  const { record, plan, moveBack } = setup();
  await redis.hset(record, { started: Date.now(), before: Date.now(), wanted: 1, again: 1 });
  expect(await plan()).toEqual([0, 1, expect.any(Number)]);
  await moveBack(10_000, "started");
  expect(await plan()).toEqual([1, 1, expect.any(Number)]);
  expect(await redis.hmget(record, "wanted", "again")).toEqual([null, null]);
});

test("the audit has who asked for a rewrite, once for each that is wanted", async () => {
  const { rewrites, store, plan } = setup();
  const pageOf = async () => (await store.audit.page(10, undefined)).entries;
  await rewrites.request(ORDER);
  await rewrites.request({ ...ORDER, by: "bob 127.0.0.1" });
  const asked = { action: "erase", details: { reason: "the user asked", rewrite: "asked" } };
  expect(await pageOf()).toMatchObject([{ by: "alice", ...asked }]);
  await plan();
  await rewrites.request({ ...ORDER, by: "bob 127.0.0.1" });
  expect(await pageOf()).toMatchObject([
    { by: "bob", ...asked },
    { by: "alice", ...asked },
  ]);
});

test("a rewrite is due once the interval has passed since workers began to look", async () => {
  const { rewrites, events, record } = setup();
  await rewrites.runRound(DAY_MS);
  await rewrites.runRound(DAY_MS);
  expect(events).toEqual([]);
  expect(await rewrites.load()).toMatchObject({ intervalMs: DAY_MS, finishedMs: undefined, isDenied: false });
  const sinceMs = Number(await redis.hget(record, "since"));
  await redis.hset(record, "since", sinceMs - DAY_MS);
  await eventually(async () => {
    await rewrites.runRound(DAY_MS);
    expect(events).toEqual(["rewrite_started", "rewrite_finished"]);
  });
});

test("a rewrite whose worker died before Redis began it is started again, and not booked before", async () => {
  const { rewrites, events, record, plan } = setup();
  const before = await rewriteCount();
  await rewrites.request(ORDER);
  // The worker that was told to start it dies here.
  expect(await plan()).toEqual([1, 1, expect.any(Number)]);
  await rewrites.runRound(NEVER);
  expect(events).toEqual([]);
  expect(await rewrites.load()).toMatchObject({ finishedMs: undefined });
  await redis.hset(record, "started", Number(await redis.hget(record, "started")) - 10_000);
  await eventually(async () => {
    await rewrites.runRound(NEVER);
    expect((await rewrites.load()).finishedMs).toBeDefined();
  });
  expect(events).toEqual(["rewrite_failed", "rewrite_started", "rewrite_finished"]);
  expect(await rewriteCount()).toBe(before + 1);
});

test("a rewrite during which Redis is killed isn't booked as finished, and is started again", async () => {
  const { rewrites, events, record, parts } = setup();
  await parts.redis.set(`${record}:of-this-test`, "value");
  // In µs for each key, so that the rewrite lasts until Redis is killed.
  await redis.config("SET", "rdb-key-save-delay", "200000");
  await rewrites.request(ORDER);
  await rewrites.runRound(NEVER);
  expect(await redis.info("persistence")).toContain("aof_rewrite_in_progress:1");
  await server.crash();
  await server.restart();
  // In old versions the child that rewrites keeps the connection open.
  redis.disconnect(true);
  await eventually(async () => expect(await redis.ping()).toBe("PONG"));
  await rewrites.runRound(NEVER);
  expect(events).toEqual(["rewrite_started", "rewrite_failed"]);
  expect(await rewrites.load()).toMatchObject({ finishedMs: undefined });
  await redis.hset(record, "started", Number(await redis.hget(record, "started")) - 10_000);
  await eventually(async () => {
    await rewrites.runRound(NEVER);
    expect((await rewrites.load()).finishedMs).toBeDefined();
  });
  expect(events.slice(2)).toEqual(["rewrite_started", "rewrite_finished"]);
});

test("a rewrite that Redis forbids is told once, and other work goes on", async () => {
  await redis.call("ACL", "SETUSER", "poor", "on", ">secret", "~*", "&*", "+@all", "-bgrewriteaof");
  const poor = new Redis(server.url, { username: "poor", password: "secret" });
  onTestFinished(() => poor.disconnect());
  const { rewrites, events, record } = setup(poor);
  for (const _time of [1, 2]) {
    await rewrites.request(ORDER);
    await redis.hset(record, "started", 0);
    await rewrites.runRound(NEVER);
  }
  expect(events).toEqual(["rewrite_denied"]);
  expect(await rewrites.load()).toMatchObject({ isDenied: true, finishedMs: undefined });
});

test("if Redis saves snapshots, a new one is saved after the rewrite", async () => {
  await redis.config("SET", "save", "3600 1");
  onTestFinished(async () => {
    await redis.config("SET", "save", "");
  });
  const savedTimes = async () =>
    Number(/^cmdstat_bgsave:calls=(\d+)/m.exec(await redis.info("commandstats"))?.[1] ?? 0);
  expect(await savedTimes()).toBe(0);
  const { rewrites } = setup();
  await rewrites.request(ORDER);
  await eventually(async () => {
    await rewrites.runRound(NEVER);
    expect((await rewrites.load()).finishedMs).toBeDefined();
  });
  expect(await savedTimes()).toBe(1);
  expect(await redis.info("persistence")).toContain("rdb_last_bgsave_status:ok");
});
