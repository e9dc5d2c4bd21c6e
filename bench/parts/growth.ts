/**
 * Intake and delivery beside a backlog, in the ledger and in the queue, against the same beside an empty one; and how
 * long the largest backlog takes to drain. The rounds of all sizes go by turns, each size with a Redis of its own.
 */

import { DeliveryQueue } from "../../packages/queue/src/index.ts";
import { timeDeliveries } from "../backlog/deliver-backlog.ts";
import { fillQueued } from "../backlog/fill-backlog.ts";
import { type Bench, inTurns } from "../bench.ts";
import { atLeast, type Figure } from "../figures/figure.ts";
import { freshPrefix } from "../load/acknowledgment-text.ts";
import { runLoad, startLoadGenerator } from "../load/load.ts";
import type { BenchChild } from "../processes/bench-child.ts";
import { type BenchRedis, startBenchRedis } from "../processes/bench-redis.ts";
import { type Served, startGateway, startProvider, startWorker } from "../processes/sides.ts";
import { intakePlan } from "./intake.ts";

/** Deliveries of a round, for each second of it: the empty backlog is filled with so many. */
const PER_SECOND = 5000;
const WARM_SHARE = 0.25;
/** At the end of an empty backlog there is less and less to do at once. */
const END_SHARE = 0.95;
const MS_PER_SECOND = 1000;

/** Both of a round. */
interface Rates {
  readonly intake: number;
  readonly delivery: number;
}

interface Sides {
  readonly provider: Served;
  readonly generator: BenchChild;
}

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
  const runs = [...sizes].map(([size, redis]) => {
    return [`${size}`, () => runRound(bench, { provider, generator }, { size, redis })] as const;
  });
  const rounds = await inTurns(bench.rounds, Object.fromEntries(runs));
  const figures = bench.growth.flatMap((size) => compare(size, rounds[`${size}`] ?? [], rounds["0"] ?? []));
  const largest = sizes.get(bench.growth.at(-1) ?? 0);
  if (largest !== undefined) {
    const ours = [await drain(bench, provider, largest)];
    figures.push({ part: "growth", what: "draining the largest backlog", unit: "/s", ours });
  }
  return figures;
}

interface Grown {
  readonly size: number;
  readonly redis: BenchRedis;
}

async function runRound(bench: Bench, sides: Sides, { size, redis }: Grown): Promise<Rates> {
  const { provider, generator } = sides;
  const place = { redisUrl: redis.url, providerUrl: provider.origin };
  const intake = await intakeBeside(bench, generator, await startGateway(bench, place));
  const count = (PER_SECOND * bench.roundMs) / MS_PER_SECOND;
  if (size === 0) {
    // What intake has left would be a backlog.
    await drain(bench, provider, redis);
    await fillQueued({ redisUrl: redis.url, prefix: freshPrefix(), count });
  }
  const startWorkerOf = () => startWorker(bench, place);
  const [from, to] = [Math.ceil(count * WARM_SHARE), Math.floor(count * END_SHARE)];
  const delivering = { provider, from, to, startWorker: startWorkerOf };
  const { ratePerSecond: delivery } = await timeDeliveries(delivering, {});
  bench.say(`beside ${size}: intake ${intake.toFixed(0)}/s, delivery ${delivery.toFixed(0)}/s`);
  return { intake, delivery };
}

async function intakeBeside(bench: Bench, generator: BenchChild, started: Served): Promise<number> {
  await using gateway = started;
  const plan = intakePlan(gateway, bench.roundMs, freshPrefix());
  return (await runLoad(generator, plan, {})).ratePerSecond;
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

function compare(size: number, rounds: readonly Rates[], empty: readonly Rates[]): Figure[] {
  return (["intake", "delivery"] as const).map((step) => ({
    part: "growth",
    what: `${step} beside ${size}`,
    unit: "/s",
    ours: rounds.map((rates) => rates[step]),
    against: { name: "an empty backlog", values: empty.map((rates) => rates[step]) },
    promise: atLeast("ratio", 0.9),
  }));
}

function secondsSince(startedAtMs: number): number {
  return (performance.now() - startedAtMs) / MS_PER_SECOND;
}
