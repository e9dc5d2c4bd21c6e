/**
 * Compares intake and delivery beside a large backlog with the same beside an empty one, and measures how fast the
 * largest backlog drains. Each size has its own Redis. The rounds of all sizes alternate, first for intake, then for
 * delivery, so that compared rounds are close together in time.
 */

import { openStore } from "@adrelay/store";
import { fillQueued, timeDeliveries } from "../backlog.ts";
import { atLeast, type Figure } from "../figures.ts";
import { freshPrefix, runLoad, startLoadGenerator } from "../load.ts";
import type { BenchChild } from "../processes.ts";
import { type Bench, inTurns } from "../rounds.ts";
import {
  type BenchRedis,
  type Served,
  startBenchRedis,
  startGateway,
  startProvider,
  startWorker,
} from "../sides.ts";
import { intakePlan, NO_PROVIDER } from "./intake.ts";

/** How many acknowledgments are queued before a round of deliveries, for each second of the round. */
const PER_SECOND = 5000;
const WARM_SHARE = 0.25;
/** The timed part ends before the last deliveries, because then fewer and fewer run in parallel. */
const END_SHARE = 0.95;
const MS_PER_SECOND = 1000;

export async function measureGrowth(bench: Bench): Promise<Figure[]> {
  await using stack = new AsyncDisposableStack();
  const provider = stack.use(await startProvider(bench));
  const generator = stack.use(await startLoadGenerator(bench.folder));
  const sizes = new Map<number, BenchRedis>();
  for (const size of [0, ...bench.growth]) {
    const redis = stack.use(await startBenchRedis());
    sizes.set(size, redis);
    const startedAtMs = performance.now();
    await fillQueued({ redisUrl: redis.url, prefix: freshPrefix(), count: size, say: bench.say });
    bench.say(`${size} filled in ${secondsSince(startedAtMs).toFixed(0)} s`);
  }
  const ratesOf = (step: Step) => inTurns(bench.rounds, roundsBeside(bench, sizes, step));
  const intake = await ratesOf({
    name: "intake",
    run: (redis) => measureIntakeBeside(bench, generator, redis),
  });
  const delivery = await ratesOf({ name: "delivery", run: (redis) => deliver(bench, provider, redis) });
  const figures = bench.growth.flatMap((size) => [
    compare(`intake beside ${size}`, intake[`${size}`] ?? [], intake["0"] ?? []),
    compare(`delivery beside ${size}`, delivery[`${size}`] ?? [], delivery["0"] ?? []),
  ]);
  const largest = sizes.get(bench.growth.at(-1) ?? 0);
  if (largest !== undefined) {
    const ours = [await drain(bench, provider, largest)];
    figures.push({ part: "growth", what: "draining the largest backlog", unit: "/s", ours });
  }
  return figures;
}

interface Step {
  readonly name: string;
  /** Runs one round and returns its rate per second. */
  readonly run: (redis: BenchRedis) => Promise<number>;
}

/** The rounds of a step, by size. The Redis without a backlog is emptied before each round. */
function roundsBeside(bench: Bench, sizes: ReadonlyMap<number, BenchRedis>, { name, run }: Step) {
  const roundOf = async (size: number, redis: BenchRedis) => {
    if (size === 0) {
      await redis.client.flushall();
    }
    const ratePerSecond = await run(redis);
    bench.say(`${name} beside ${size}: ${ratePerSecond.toFixed(0)}/s`);
    return ratePerSecond;
  };
  return Object.fromEntries([...sizes].map(([size, redis]) => [`${size}`, () => roundOf(size, redis)]));
}

async function measureIntakeBeside(bench: Bench, generator: BenchChild, redis: BenchRedis): Promise<number> {
  await using gateway = await startGateway(bench, { redisUrl: redis.url, providerUrl: NO_PROVIDER });
  const plan = intakePlan(gateway, bench.roundMs, freshPrefix());
  return (await runLoad(generator, plan, {})).ratePerSecond;
}

async function deliver(bench: Bench, provider: Served, redis: BenchRedis): Promise<number> {
  const count = (PER_SECOND * bench.roundMs) / MS_PER_SECOND;
  // A backlog would have enough to deliver. But Redis and its disk must have done the same work before, on every side.
  await fillQueued({ redisUrl: redis.url, prefix: freshPrefix(), count });
  const place = { redisUrl: redis.url, providerUrl: provider.origin };
  const startWorkerOf = () => startWorker(bench, place);
  const [from, to] = [Math.ceil(count * WARM_SHARE), Math.floor(count * END_SHARE)];
  return (await timeDeliveries({ provider, from, to, startWorker: startWorkerOf }, {})).ratePerSecond;
}

/** Delivers the whole backlog and returns the rate per second. */
async function drain(bench: Bench, provider: Served, redis: BenchRedis): Promise<number> {
  const store = openStore({ redis: redis.client, recordRetentionMs: 1 });
  const { waiting } = await store.queueDepths();
  await store.stop();
  const startWorkerOf = () => startWorker(bench, { redisUrl: redis.url, providerUrl: provider.origin });
  const delivering = { provider, from: 1, to: waiting, startWorker: startWorkerOf };
  const { count, ratePerSecond } = await timeDeliveries(delivering, {});
  bench.say(`${waiting} drained in ${(count / ratePerSecond).toFixed(1)} s`);
  return ratePerSecond;
}

function compare(what: string, ours: readonly number[], empty: readonly number[]): Figure {
  const against = { name: "an empty backlog", values: empty };
  return { part: "growth", what, unit: "/s", ours, against, promise: atLeast("ratio", 0.9) };
}

function secondsSince(startedAtMs: number): number {
  return (performance.now() - startedAtMs) / MS_PER_SECOND;
}
