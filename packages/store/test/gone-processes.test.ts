/**
 * Guards against waiting for the locks of killed workers, and against a second post of what a living worker holds. The processes
 * here are connections to a real Redis: one that is killed loses its lifeline, one that stands still keeps it. Their silence
 * is written into Redis instead of being waited for.
 */
import { randomUUID } from "node:crypto";
import type { AdResponseId } from "@adrelay/contract";
import { startTestRedis } from "@adrelay/dev-servers";
import { eventually, startSocketProxy } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { Registry } from "prom-client";
import { afterEach, expect, test } from "vitest";
import type { StoreLog, StoreLogFields } from "../src/store-log.ts";
import { jobOf, newId, openTestRedis, openTestStore, settlementOf } from "./store-fixture.ts";

const { redis, server } = await openTestRedis({ maxRetriesPerRequest: null });
const stops: (() => unknown)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

interface ProcessOptions {
  readonly partition?: string;
  readonly pid?: number;
  readonly concurrency?: number;
  /** A user of Redis, with its password in front of the address. */
  readonly user?: string;
  /** Where its subscriber connects to, if not to the Redis of the others. */
  readonly subscriberUrl?: string;
}

/** A worker with a heartbeat, a lifeline and deliveries. Its attempts hang until `answer` is called. */
async function startProcess({
  partition = randomUUID(),
  pid = 1,
  concurrency = 10,
  user = "",
  subscriberUrl,
}: ProcessOptions = {}) {
  const url = server.url.replace("//", `//${user}`);
  const [own, subscriber] = [
    new Redis(url, { maxRetriesPerRequest: null }),
    new Redis(subscriberUrl ?? url, { maxRetriesPerRequest: null }),
  ];
  const logged: StoreLogFields[] = [];
  const ignore = () => {};
  const warn = (fields: StoreLogFields) => void logged.push(fields);
  const log: StoreLog = { debug: ignore, info: ignore, warn, error: warn };
  const fixture = openTestStore(own, { waitingRedis: own, partition, log });
  const { store, parts } = fixture;
  const heartbeat = store.heartbeat({
    identity: { role: "worker", host: "h", pid, version: "1.0.0", startedAtMs: 1000 },
    registry: new Registry(),
    subscriber,
  });
  const answered = Promise.withResolvers<void>();
  const attempts: AdResponseId[] = [];
  const start = () =>
    store.deliveries.start({
      concurrency,
      attemptTimeoutMs: 60_000,
      attempt: async ({ job }) => {
        attempts.push(job.adResponseId);
        await answered.promise;
        const settlement = settlementOf(job.adResponseId, "deliver");
        return { kind: "made", settlement, isProbe: false, trace: { own: undefined, recorded: undefined } };
      },
      onSettled: () => {},
    });
  stops.push(async () => {
    answered.resolve();
    await store.deliveries.stop();
    await store.stop();
    own.disconnect();
    subscriber.disconnect();
  });
  await heartbeat.beat();
  const processKey = fixture.key("processes");
  const recordOf = (id: string) => redis.hget(processKey, id);
  return {
    ...fixture,
    heartbeat,
    subscriber,
    logged,
    attempts,
    start,
    answer: answered.resolve,
    id: parts.processId,
    record: () => recordOf(parts.processId),
    /** Its last heartbeat seems to be this long ago; heartbeats of others have come since. */
    fallSilent: async (silentMs = 3500) => {
      const [seconds, micros] = await redis.time();
      const seenMs = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000) - silentMs;
      const text = (await recordOf(parts.processId)) ?? "";
      await redis.hset(processKey, parts.processId, text.replace(/^(\d+) \d+/, `$1 ${seenMs}`));
      await redis.hset(fixture.key("heartbeat"), "at", Date.now(), "steady", 1);
    },
    /** Ends its lifeline, as its kernel does if it is killed. */
    endLifeline: async () => {
      subscriber.disconnect();
      const channel = parts.keys.lifelinePrefix + parts.processId;
      await eventually(async () => expect(await redis.pubsub("NUMSUB", channel)).toEqual([channel, 0]));
    },
  };
}

type Process = Awaited<ReturnType<typeof startProcess>>;

/** A worker that runs as many attempts as it can, and another one that holds nothing yet. */
async function startPair(count = 4) {
  const victim = await startProcess({ pid: 7, concurrency: count });
  const peer = await startProcess({ partition: victim.partition, pid: 8 });
  victim.start();
  const ids = Array.from({ length: count }, newId);
  for (const id of ids) {
    await peer.acknowledgments.accept({ job: jobOf(id), textHash: "hash" });
  }
  await eventually(() => expect(victim.attempts.toSorted()).toEqual(ids.toSorted()));
  return { victim, peer, ids };
}

async function kill(victim: Process) {
  await victim.endLifeline();
  await victim.fallSilent();
}

const depths = ({ queueDepths }: Process) => queueDepths();

test("jobs of a killed worker are attempted again at once, and those of others are not", async () => {
  const { victim, peer, ids } = await startPair();
  const third = await startProcess({ partition: victim.partition, pid: 9 });
  third.start();
  const other = newId();
  await third.acknowledgments.accept({ job: jobOf(other), textHash: "hash" });
  await eventually(() => expect(third.attempts).toEqual([other]));
  await kill(victim);
  await peer.maintenance.returnJobs();
  expect(peer.logged).toEqual([
    { event: "process_gone", role: "worker", host: "h", pid: 7, version: "1.0.0", jobs: ids.length },
  ]);
  peer.start();
  await eventually(() => {
    expect([...peer.attempts, ...third.attempts].toSorted()).toEqual([...ids, other].toSorted());
  });
  expect(await depths(peer)).toMatchObject({ waiting: 0, active: ids.length + 1 });
});

test("the jobs of a process are returned once, and it isn't listed any more", async () => {
  const { victim, peer } = await startPair(1);
  await kill(victim);
  expect((await peer.heartbeat.loadProcesses()).map(({ pid }) => pid)).toEqual([8]);
  await Promise.all([peer.maintenance.returnJobs(), peer.maintenance.returnJobs()]);
  expect(peer.logged).toHaveLength(1);
  expect(await victim.record()).toBeNull();
});

test("jobs that a worker still holds after its stop are attempted again as soon as it is gone", async () => {
  const { victim, peer, ids } = await startPair();
  const stopped = victim.deliveries.stop();
  await victim.heartbeat.leave();
  await kill(victim);
  await peer.maintenance.returnJobs();
  expect(peer.logged).toMatchObject([{ event: "process_gone", pid: 7, jobs: ids.length }]);
  expect(await depths(peer)).toMatchObject({ waiting: ids.length, active: 0 });
  victim.answer();
  await stopped;
});

test("a worker whose attempts end before its stop does leaves", async () => {
  const { victim, peer } = await startPair();
  const stopped = victim.deliveries.stop();
  victim.answer();
  await stopped;
  await victim.heartbeat.leave();
  expect(await victim.record()).toBeNull();
  expect(await depths(peer)).toMatchObject({ waiting: 0, active: 0 });
});

test("the jobs of two workers that are killed together are returned together", async () => {
  const { victim, peer, ids } = await startPair();
  const second = await startProcess({ partition: victim.partition, pid: 9 });
  await kill(second);
  await kill(victim);
  await peer.maintenance.returnJobs();
  expect(peer.logged.map(({ pid, jobs }) => [pid, jobs]).toSorted()).toEqual([
    [7, ids.length],
    [9, 0],
  ]);
});

test("a silent worker with its lifeline stands still and keeps its jobs", async () => {
  const { victim, peer, ids } = await startPair();
  await victim.fallSilent(50_000);
  await peer.maintenance.returnJobs();
  expect(await depths(peer)).toMatchObject({ waiting: 0, active: ids.length });
  expect(await peer.heartbeat.loadProcesses()).toHaveLength(2);
});

test("a worker whose connection broke but whose heartbeat comes keeps its jobs", async () => {
  const { victim, peer, ids } = await startPair();
  await victim.endLifeline();
  await victim.fallSilent(2000);
  await peer.maintenance.returnJobs();
  expect(await depths(peer)).toMatchObject({ waiting: 0, active: ids.length });
  // Its next heartbeat says that it has no lifeline, so its silence says nothing.
  await victim.heartbeat.beat();
  await victim.fallSilent();
  await peer.maintenance.returnJobs();
  expect(await depths(peer)).toMatchObject({ waiting: 0, active: ids.length });
});

test.each(["long ago", "in the future"])(
  "silence counts only from the first heartbeat after one %s",
  async (latest) => {
    const { victim, peer, ids } = await startPair();
    await kill(victim);
    const at = Date.now() + (latest === "long ago" ? -10_000 : 3_600_000);
    await redis.hset(peer.key("heartbeat"), "at", at);
    await peer.maintenance.returnJobs();
    await peer.heartbeat.beat();
    await peer.maintenance.returnJobs();
    expect(await depths(peer)).toMatchObject({ waiting: 0, active: ids.length });
    await victim.fallSilent();
    await peer.maintenance.returnJobs();
    expect(await depths(peer)).toMatchObject({ waiting: ids.length, active: 0 });
  },
);

test("a process whose record names no lifeline keeps its jobs", async () => {
  const { victim, peer, ids } = await startPair();
  const record = (await victim.record())?.replace(',"hasLifeline":true', "");
  await redis.hset(victim.key("processes"), victim.id, record ?? "");
  await kill(victim);
  await peer.maintenance.returnJobs();
  expect(await depths(peer)).toMatchObject({ waiting: 0, active: ids.length });
});

test("a process never takes itself for gone", async () => {
  const { victim, ids } = await startPair();
  await kill(victim);
  await victim.maintenance.returnJobs();
  expect(await depths(victim)).toMatchObject({ waiting: 0, active: ids.length });
});

test("a full Redis lets jobs be returned", async () => {
  const { victim, peer, ids } = await startPair();
  await kill(victim);
  await redis.config("SET", "maxmemory", "1");
  stops.push(() => redis.config("SET", "maxmemory", "0"));
  await peer.maintenance.returnJobs();
  expect(await depths(peer)).toMatchObject({ waiting: ids.length, active: 0 });
});

test("of a worker that lives after all, each acknowledgment is booked once", async () => {
  const { victim, peer, ids } = await startPair();
  await kill(victim);
  await peer.maintenance.returnJobs();
  peer.start();
  await eventually(() => expect(peer.attempts.toSorted()).toEqual(ids.toSorted()));
  victim.answer();
  await eventually(async () => expect((await peer.find(ids[0] ?? newId()))?.state).toBe("delivered"));
  peer.answer();
  await eventually(async () => expect(await depths(peer)).toMatchObject({ waiting: 0, active: 0 }));
  expect((await peer.snapshot()).totals.get("delivered")).toMatchObject([{ value: ids.length }]);
  // It is listed again, and has lost no data.
  await victim.heartbeat.beat();
  expect(await peer.heartbeat.loadProcesses()).toHaveLength(2);
  expect(victim.logged.filter(({ event }) => event === "redis_data_lost")).toEqual([]);
});

/** A user of Redis that lacks one right. */
async function userWithout(right: string): Promise<string> {
  const name = `without-${right}`;
  await redis.acl("SETUSER", name, "on", ">secret", "~*", "&*", "+@all", `-${right}`);
  return `${name}:secret@`;
}

test.each(["subscribe", "pubsub"])(
  "without the right to %s a process has no lifeline, and says so once",
  async (right) => {
    const poor = await startProcess({ user: await userWithout(right) });
    const peer = await startProcess({ partition: poor.partition });
    for (let beat = 0; beat < 15; beat += 1) {
      await poor.heartbeat.beat();
    }
    expect(poor.logged.map(({ event }) => event)).toEqual(["lifeline_unseen"]);
    await kill(poor);
    await peer.maintenance.returnJobs();
    expect(await poor.record()).not.toBeNull();
  },
);

test("a subscriber that stayed at the old primary after a fail-over moves to the new one", async () => {
  const old = await startTestRedis();
  stops.push(() => old.dispose());
  const way = await startSocketProxy(Number(new URL(old.url).port));
  stops.push(() => way.close());
  const worker = await startProcess({ subscriberUrl: `redis://127.0.0.1:${way.port}` });
  way.setTarget(Number(new URL(server.url).port));
  // The subscription is confirmed before the answer to this.
  await worker.subscriber.ping();
  await worker.heartbeat.beat();
  expect(worker.subscriber.status).toBe("ready");
  await worker.heartbeat.beat();
  const channel = worker.parts.keys.lifelinePrefix + worker.parts.processId;
  await eventually(async () => expect(await redis.pubsub("NUMSUB", channel)).toEqual([channel, 1]));
  await worker.heartbeat.beat();
  expect(await worker.record()).toContain('"hasLifeline":true');
  expect(worker.logged).toEqual([]);
});

test("a process that can't see lifelines takes nobody for gone", async () => {
  const { victim, ids } = await startPair();
  const poor = await startProcess({ partition: victim.partition, user: await userWithout("pubsub") });
  await kill(victim);
  await poor.maintenance.returnJobs();
  expect(await depths(poor)).toMatchObject({ waiting: 0, active: ids.length });
});
