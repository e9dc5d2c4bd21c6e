/**
 * Intake and delivery beside a backlog, in the ledger and in the queue, against the same beside an empty one; and how
 * long the largest backlog takes to drain. Each size has a Redis of its own; the rounds of all sizes go by turns, first
 * those of intake, then those of delivery, so that what is compared lies close together in time.
 */

import { DeliveryQueue } from "@adrelay/queue";
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

/** Deliveries of a round, for each second of it: so many are queued before. */
const PER_SECOND = 5000;
const WARM_SHARE = 0.25;
/** At the end of an empty backlog there is less and less to do at once. */
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
  const intake = await ratesOf({ name: "intake", run: (redis) => takeIn(bench, generator, redis) });
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
  /** The rate a second of one round. */
  readonly run: (redis: BenchRedis) => Promise<number>;
}

/** A round of a step for each size, by the size's name. The one without a backlog is emptied before. */
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

async function takeIn(bench: Bench, generator: BenchChild, redis: BenchRedis): Promise<number> {
  await using gateway = await startGateway(bench, { redisUrl: redis.url, providerUrl: NO_PROVIDER });
  const plan = intakePlan(gateway, bench.roundMs, freshPrefix());
  return (await runLoad(generator, plan, {})).ratePerSecond;
}

async function deliver(bench: Bench, provider: Served, redis: BenchRedis): Promise<number> {
  const count = (PER_SECOND * bench.roundMs) / MS_PER_SECOND;
  // Beside a backlog there is enough, but Redis and its disk are to have the same behind them.
  await fillQueued({ redisUrl: redis.url, prefix: freshPrefix(), count });
  const place = { redisUrl: redis.url, providerUrl: provider.origin };
  const startWorkerOf = () => startWorker(bench, place);
  const [from, to] = [Math.ceil(count * WARM_SHARE), Math.floor(count * END_SHARE)];
  return (await timeDeliveries({ provider, from, to, startWorker: startWorkerOf }, {})).ratePerSecond;
}

/** Delivers all that there is; the rate of it a second. */
async function drain(bench: Bench, provider: Served, redis: BenchRedis): Promise<number> {
  const queue = new DeliveryQueue({ redis: redis.client });
  const { waiting } = await queue.counts();
  await queue.close();
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
