/**
 * Compares deliveries per second to a provider that answers immediately with those of a bare BullMQ Worker with
 * undici.request. Each round has a fresh Redis with a queued backlog. The timed part lies within the backlog.
 */
import { type DeliveryRound, fillNaive, fillQueued, timeDeliveries } from "../backlog.ts";
import { atLeast, type Figure } from "../figures.ts";
import { freshPrefix } from "../load.ts";
import { type Bench, inTurns } from "../rounds.ts";
import { type Served, startBareWorker, startBenchRedis, startProvider, startWorker } from "../sides.ts";

/** The backlog of a round, for each second of the round. */
const PER_SECOND = 9000;
/** The timed part begins and ends after these shares of the backlog. */
const WARM_AT = 0.5;
const END_AT = 0.95;
const MS_PER_SECOND = 1000;
const US_PER_MS = 1000;

export async function measureDelivery(bench: Bench): Promise<Figure[]> {
  await using provider = await startProvider(bench);
  const rounds = await inTurns(bench.rounds, {
    bare: () => runRound(bench, provider, "bare worker"),
    ours: () => runRound(bench, provider, "worker"),
  });
  const figure = (what: string, unit: string, value: (round: DeliveryRound) => number): Figure => ({
    part: "delivery",
    what,
    unit,
    ours: rounds.ours.map(value),
    against: { name: "bare worker", values: rounds.bare.map(value) },
  });
  const cpuUs = (process: string) => (round: DeliveryRound) =>
    ((round.cpuMs[process] ?? 0) * US_PER_MS) / round.count;
  return [
    { ...figure("deliveries", "/s", (round) => round.ratePerSecond), promise: atLeast("ratio", 0.9) },
    figure("CPU of the worker per delivery", "µs", cpuUs("worker")),
    figure("CPU of Redis per delivery", "µs", cpuUs("redis")),
    figure("CPU of the provider per delivery", "µs", cpuUs("provider")),
  ];
}

async function runRound(
  bench: Bench,
  provider: Served,
  side: "worker" | "bare worker",
): Promise<DeliveryRound> {
  await using redis = await startBenchRedis();
  const count = (PER_SECOND * bench.roundMs) / MS_PER_SECOND;
  const filling = { redisUrl: redis.url, prefix: freshPrefix(), count };
  await (side === "worker" ? fillQueued(filling) : fillNaive(filling));
  const place = { redisUrl: redis.url, providerUrl: provider.origin };
  const startSide = side === "worker" ? startWorker : startBareWorker;
  const round = await timeDeliveries(
    {
      provider,
      from: Math.ceil(count * WARM_AT),
      to: Math.floor(count * END_AT),
      startWorker: () => startSide(bench, place),
    },
    { redis: redis.pid },
  );
  bench.say(`delivery, ${side}: ${round.ratePerSecond.toFixed(0)}/s`);
  return round;
}
