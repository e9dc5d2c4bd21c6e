/**
 * The memory that Redis uses for an entry in each state: the growth of `used_memory` over 10,000 entries, after it has
 * settled. Other entries come before them. They create everything that exists only once, and fill everything that is
 * bounded, such as BullMQ's stream of the latest 10,000 events. All acknowledgments are for recorded injections.
 */
import { setTimeout as wait } from "node:timers/promises";
import { duringDeliveries, type Filling, fillAwaiting, fillNaive, fillQueued } from "../backlog.ts";
import { atMost, type Figure } from "../figures.ts";
import { freshPrefix } from "../load.ts";
import type { Bench } from "../rounds.ts";
import { type BenchRedis, type Served, startBenchRedis, startProvider, startWorker } from "../sides.ts";

const FIRST_ENTRIES = 6000;
const ENTRIES = 10_000;
const LOOK_INTERVAL_MS = 500;
const CHECKS_MAX = 40;
/** If two measurements differ by less than this, the memory has settled. */
const SETTLED_BYTES = 2000;

type Fill = (filling: Filling) => Promise<void>;

export async function measureMemory(bench: Bench): Promise<Figure[]> {
  await using provider = await startProvider(bench);
  const delivered = fillThenWork(bench, provider, provider.origin);
  const dead = fillThenWork(bench, provider, `${provider.origin}/unprocessable`);
  const bytes = {
    awaiting: await bytesOf(fillAwaiting),
    queued: await bytesOf(fillKnown),
    delivered: await bytesOf(delivered),
    dead: await bytesOf(dead),
    bareJob: await bytesOf(fillNaive),
  };
  const figure = (state: string, value: number): Figure => {
    return { part: "redis", what: `memory of one ${state} entry`, unit: "B", ours: [value] };
  };
  const bareJob = { name: "bare BullMQ job", values: [bytes.bareJob] };
  return [
    figure("awaiting", bytes.awaiting),
    { ...figure("queued", bytes.queued), against: bareJob, promise: atMost("ratio", 1.3) },
    { ...figure("delivered", bytes.delivered), promise: atMost("value", 400) },
    { ...figure("dead", bytes.dead), against: bareJob },
  ];
}

async function bytesOf(fill: Fill): Promise<number> {
  await using redis = await startBenchRedis();
  await fill({ redisUrl: redis.url, prefix: freshPrefix(), count: FIRST_ENTRIES });
  const before = await settledBytes(redis);
  await fill({ redisUrl: redis.url, prefix: freshPrefix(), count: ENTRIES });
  return ((await settledBytes(redis)) - before) / ENTRIES;
}

async function fillKnown(filling: Filling): Promise<void> {
  await fillAwaiting(filling);
  await fillQueued(filling);
}

/** Queues acknowledgments and lets a worker process all of them. */
function fillThenWork(bench: Bench, provider: Served, providerUrl: string): Fill {
  return async (filling) => {
    await fillKnown(filling);
    const { redisUrl, count } = filling;
    const startWorkerOf = () => startWorker(bench, { redisUrl, providerUrl });
    await duringDeliveries({ provider, from: 1, to: count, startWorker: startWorkerOf }, ({ last }) => last);
  };
}

async function settledBytes(redis: BenchRedis): Promise<number> {
  let before = Number.POSITIVE_INFINITY;
  for (let check = 0; check < CHECKS_MAX; check += 1) {
    await redis.client.memory("PURGE");
    await wait(LOOK_INTERVAL_MS);
    const bytes = await redis.info("memory", "used_memory");
    if (Math.abs(bytes - before) < SETTLED_BYTES) {
      return bytes;
    }
    before = bytes;
  }
  return before;
}
