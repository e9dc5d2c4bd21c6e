/** Heartbeats on a real Redis, and how they detect a loss of its data. */

import { randomUUID } from "node:crypto";
import { startTestRedis } from "@adrelay/dev-servers";
import { Redis } from "ioredis";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import type { ProcessIdentity } from "../src/heartbeat/process-record.ts";
import { openStore } from "../src/index.ts";
import type { StoreLog, StoreLogFields } from "../src/store-log.ts";
import { openTestRedis } from "./store-fixture.ts";

const { redis } = await openTestRedis();

function setup() {
  const partition = randomUUID();
  const key = (name: string) => `{adrelay:${partition}}:${name}`;
  const start = (identity: Partial<ProcessIdentity> = {}, connection = redis) => {
    const losses: object[] = [];
    const registry = new Registry();
    const ignore = () => {};
    const onError = ({ event, ...held }: StoreLogFields) => event === "redis_data_lost" && losses.push(held);
    const log: StoreLog = { debug: ignore, info: ignore, warn: ignore, error: onError };
    const store = openStore({ redis: connection, partition, recordRetentionMs: 1, log });
    const heartbeat = store.heartbeat({
      registry,
      identity: { role: "worker", host: "h", pid: 1, version: "1.0.0", startedAtMs: 1000, ...identity },
    });
    const lossesTotal = async () =>
      (await registry.getSingleMetric("adrelay_redis_data_losses_total")?.get())?.values[0]?.value;
    return { heartbeat, losses, lossesTotal };
  };
  return { key, start };
}

test("a process with a heartbeat is listed until it leaves", async () => {
  const { start } = setup();
  const gateway = start({ role: "gateway", pid: 7, version: "2.0.0" });
  const worker = start({ startedAtMs: 2000 });
  await Promise.all([gateway.heartbeat.beat(), worker.heartbeat.beat()]);
  await gateway.heartbeat.beat();
  const listed = await worker.heartbeat.loadProcesses();
  expect(listed.map(({ role, pid, version }) => [role, pid, version])).toEqual([
    ["gateway", 7, "2.0.0"],
    ["worker", 1, "1.0.0"],
  ]);
  expect(Math.abs(listed[0]?.clockSkewMs ?? Number.NaN)).toBeLessThan(500);
  expect(listed[1]?.clockSkewMs).toBeNull();
  await gateway.heartbeat.leave();
  expect(await worker.heartbeat.loadProcesses()).toHaveLength(1);
});

test("a record that is a minute old is left out and soon removed", async () => {
  const { start, key } = setup();
  const { heartbeat } = start();
  await redis.hset(key("processes"), "gone", `1 1000 ${JSON.stringify({ role: "worker" })}`);
  await heartbeat.beat();
  expect(await heartbeat.loadProcesses()).toHaveLength(1);
  for (let beat = 0; beat < 10; beat += 1) {
    await heartbeat.beat();
  }
  expect(await redis.hlen(key("processes"))).toBe(1);
});

test("a record that can't be read doesn't hide the others", async () => {
  const { start, key } = setup();
  const { heartbeat } = start();
  await heartbeat.beat();
  await redis.hset(key("processes"), "odd", `1 ${Date.now()} {"role":"console"}`);
  expect(await heartbeat.loadProcesses()).toHaveLength(1);
});

const KEYS = ["heartbeat", "processes", "data-loss", "queued", "dead", "awaiting"];

test("an emptied Redis is reported once by each process and written down for later ones", async () => {
  const { start, key } = setup();
  const [first, second] = [start(), start()];
  await redis.zadd(key("queued"), 1, "a", 1, "b");
  await redis.zadd(key("dead"), 1, "c");
  for (const { heartbeat } of [first, second, first, second]) {
    await heartbeat.beat();
  }
  await redis.del(KEYS.map(key));
  // More heartbeats than before the loss: the count itself would show nothing any more.
  for (let round = 0; round < 6; round += 1) {
    await first.heartbeat.beat();
  }
  await second.heartbeat.beat();
  await second.heartbeat.beat();
  expect(first.losses).toEqual([{ queued: 2, dead: 1, awaiting: 0 }]);
  expect(second.losses).toHaveLength(1);
  expect(await first.lossesTotal()).toBe(1);
  const loss = await start().heartbeat.loadLoss();
  expect(loss?.detail).toContain("about 2 queued, 1 dead and 0 awaiting");
  for (const { heartbeat } of [first, second]) {
    expect(heartbeat.warnings()["redis_data"]).toContain(new Date(loss?.atMs ?? 0).toISOString());
  }
});

test("a Redis that went back is detected, also after many other heartbeats", async () => {
  const { start, key } = setup();
  const [before, witness] = [start(), start()];
  await before.heartbeat.beat();
  await witness.heartbeat.beat();
  const backup = await Promise.all(KEYS.map((name) => redis.dumpBuffer(key(name))));
  await witness.heartbeat.beat();
  for (const [at, name] of KEYS.entries()) {
    const dump = backup[at];
    await redis.del(key(name));
    if (dump) {
      await redis.restore(key(name), 0, dump);
    }
  }
  for (let round = 0; round < 5; round += 1) {
    await before.heartbeat.beat();
  }
  await witness.heartbeat.beat();
  expect(before.losses).toHaveLength(0);
  expect(witness.losses).toHaveLength(1);
  expect(witness.heartbeat.warnings()).toHaveProperty("redis_data");
});

test("a restart of Redis with all its data is no loss", async () => {
  const own = await startTestRedis();
  const client = new Redis(own.url, { maxRetriesPerRequest: null, retryStrategy: () => 20 });
  client.on("error", () => {});
  try {
    const { heartbeat, losses } = setup().start({}, client);
    await heartbeat.beat();
    await own.crash();
    await own.restart();
    await heartbeat.beat();
    await heartbeat.beat();
    expect(losses).toEqual([]);
    expect(heartbeat.warnings()).toEqual({});
  } finally {
    client.disconnect();
    await own.dispose();
  }
});

test("a heartbeat shows whether Redis accepts writes, and that is logged once", async () => {
  const events: unknown[] = [];
  const keep = (line: StoreLogFields) => void events.push(line.event);
  const log: StoreLog = { debug: keep, info: keep, warn: keep, error: keep };
  const store = openStore({ redis, partition: randomUUID(), recordRetentionMs: 1, log });
  const heartbeat = store.heartbeat({
    registry: new Registry(),
    identity: { role: "gateway", host: "h", pid: 1, version: "1.0.0", startedAtMs: 1000 },
  });
  expect(heartbeat.writes.kind).toBe("refused");
  await heartbeat.beat();
  expect(heartbeat.writes).toEqual({ kind: "accepted" });
  await redis.config("SET", "maxmemory", "1");
  await heartbeat.beat();
  await heartbeat.beat();
  expect(heartbeat.writes).toEqual({ kind: "full", why: expect.stringContaining("maxmemory") });
  expect(await heartbeat.loadProcesses()).toHaveLength(1);
  await redis.config("SET", "maxmemory", "0");
  await redis.replicaof("127.0.0.1", 1);
  await expect(heartbeat.beat()).rejects.toThrow("READONLY");
  expect(heartbeat.writes).toEqual({ kind: "refused", why: expect.stringContaining("replica") });
  expect(heartbeat.warnings()).toEqual({ redis_writes: expect.stringContaining("REDIS_URL") });
  await redis.replicaof("NO", "ONE");
  await heartbeat.beat();
  expect(heartbeat.writes).toEqual({ kind: "accepted" });
  expect(events).toEqual(["redis_refuses_writes", "redis_refuses_writes", "redis_accepts_writes"]);
});
