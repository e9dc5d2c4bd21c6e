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

function setup(connection = redis) {
  const fixture = openTestStore(connection);
  const events: string[] = [];
  const log = (line: { readonly event: string }) => events.push(line.event);
  const rewrites = new Rewrites({ ...fixture.parts, log: { debug: log, info: log, warn: log, error: log } });
  const key = fixture.parts.keys.rewrites;
  /** As a worker asks that takes no further step. */
  const plan = () => fixture.parts.run("maintenance/plan-rewrite", { keys: [key], args: [NEVER, 5000] });
  return { ...fixture, rewrites, events, record: key, plan };
}

async function rewriteCount(): Promise<number> {
  return Number(/^aof_rewrites:(\d+)/m.exec(await redis.info())?.[1]);
}

test("a rewrite that an operator asked for is started once, and its end is booked", async () => {
  const { rewrites, events } = setup();
  const before = await rewriteCount();
  await rewrites.runRound(NEVER);
  expect(events).toEqual([]);
  await rewrites.request();
  await Promise.all(Array.from({ length: 5 }, () => rewrites.runRound(NEVER)));
  await eventually(async () => {
    await rewrites.runRound(NEVER);
    expect((await rewrites.load()).finishedMs).toBeDefined();
  });
  expect(events).toEqual(["rewrite_started", "rewrite_finished"]);
  expect(await rewriteCount()).toBe(before + 1);
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
  await rewrites.request();
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
  await rewrites.request();
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
    await rewrites.request();
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
  await rewrites.request();
  await eventually(async () => {
    await rewrites.runRound(NEVER);
    expect((await rewrites.load()).finishedMs).toBeDefined();
  });
  expect(await savedTimes()).toBe(1);
  expect(await redis.info("persistence")).toContain("rdb_last_bgsave_status:ok");
});
