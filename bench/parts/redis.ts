/** The cost in Redis: commands and bytes of each step, and the memory of an entry in each state. */

import { setTimeout as wait } from "node:timers/promises";
import { duringDeliveries, fillAwaiting, fillNaive, fillQueued } from "../backlog.ts";
import type { Figure } from "../figures.ts";
import { freshPrefix, type LoadPlan, runLoad, startLoadGenerator } from "../load.ts";
import type { BenchChild } from "../processes.ts";
import type { Bench } from "../rounds.ts";
import {
  type BenchRedis,
  type Served,
  startBareWorker,
  startBenchRedis,
  startGateway,
  startNaiveServer,
  startProvider,
  startWorker,
} from "../sides.ts";
import { injectionPlan } from "./injection.ts";
import { intakePlan } from "./intake.ts";
import { measureMemory } from "./redis-memory.ts";
import { countBytes, type RedisBytes, type RedisTraffic, watchCommands } from "./redis-watch.ts";

export async function measureRedis(bench: Bench): Promise<Figure[]> {
  return [...(await measureCommands(bench)), ...(await measureMemory(bench))];
}

/** How many steps are watched for their commands, and as many again for their bytes, because MONITOR would add bytes. */
const STEPS = 2000;
const CONNECTIONS = 16;
/** Commands that are rarer than this per step are not printed. */
const SHOWN_FROM = 0.05;
/** How many steps run before and are not watched: they load scripts and open connections. */
const WARMUP_STEPS = 500;
const IDLE_SECONDS = 10;
const IDLE_WARMUP_MS = 2000;
const MS_PER_SECOND = 1000;

/** The cost of one step, or of one idle second. */
interface Cost extends RedisBytes, Pick<RedisTraffic, "sent" | "inScripts"> {}

/** Steps of one kind. Their preparation is not watched. */
interface Steps {
  readonly name: string;
  prepare?(count: number): Promise<void>;
  run(count: number): Promise<unknown>;
}

interface Sides {
  readonly redis: BenchRedis;
  readonly provider: Served;
  readonly generator: BenchChild;
}

async function measureCommands(bench: Bench): Promise<Figure[]> {
  await using provider = await startProvider(bench);
  await using generator = await startLoadGenerator(bench.folder);
  const withRedis = async <T>(run: (sides: Sides) => Promise<T>): Promise<T> => {
    await using redis = await startBenchRedis();
    return await run({ redis, provider, generator });
  };
  const gateway = await withRedis((sides) => gatewayCosts(bench, sides));
  const naive = await withRedis((sides) => naiveCost(bench, sides));
  const idle = await withRedis((sides) => idleWorkerCost(bench, sides));
  const worker = await withRedis((sides) => deliveryCost(bench, sides, "worker"));
  const bare = await withRedis((sides) => deliveryCost(bench, sides, "bare worker"));
  return [
    ...figuresOf("an injection", gateway.injection),
    ...figuresOf("intake, unknown id", gateway.unknown, { name: "naive server", cost: naive }),
    ...figuresOf("intake, known id", gateway.known, { name: "naive server", cost: naive }),
    ...figuresOf("a delivery", worker, { name: "bare worker", cost: bare }),
    ...figuresOf("a second of an idle gateway", gateway.idle),
    ...figuresOf("a second of an idle worker", idle),
  ];
}

async function gatewayCosts(bench: Bench, sides: Sides) {
  const { redis, provider } = sides;
  await using gateway = await startGateway(bench, { redisUrl: redis.url, providerUrl: provider.origin });
  const injections: Steps = {
    name: "injection",
    run: (count) => send(sides, injectionPlan(gateway, CONNECTIONS, 0), count),
  };
  return {
    idle: await costOfIdling(bench, redis, "gateway"),
    injection: await costOf(bench, redis, injections),
    unknown: await costOf(bench, redis, intakeOf(sides, gateway, "unknown")),
    known: await costOf(bench, redis, intakeOf(sides, gateway, "known")),
  };
}

async function naiveCost(bench: Bench, sides: Sides): Promise<Cost> {
  const { redis, provider } = sides;
  await using server = await startNaiveServer(bench, { redisUrl: redis.url, providerUrl: provider.origin });
  return await costOf(bench, redis, { ...intakeOf(sides, server, "unknown"), name: "naive intake" });
}

function intakeOf(sides: Sides, server: Served, ids: "known" | "unknown"): Steps {
  let prefix = "";
  return {
    name: `intake, ${ids} id`,
    prepare: async (count) => {
      prefix = freshPrefix();
      await fillAwaiting({ redisUrl: sides.redis.url, prefix, count: ids === "known" ? count : 0 });
    },
    run: (count) => send(sides, intakePlan(server, 0, prefix), count),
  };
}

function send({ generator }: Sides, plan: Omit<LoadPlan, "kind">, count: number): Promise<unknown> {
  return runLoad(generator, { ...plan, length: { kind: "count", count } }, {});
}

async function costOf(bench: Bench, redis: BenchRedis, { name, prepare, run }: Steps): Promise<Cost> {
  const prepared = async (count: number) => {
    await prepare?.(count);
    return () => run(count);
  };
  await (await prepared(WARMUP_STEPS))();
  const traffic = await watchCommands(redis, await prepared(STEPS));
  const bytes = await countBytes(redis, await prepared(STEPS));
  return perStep(bench, { name, traffic, bytes, steps: STEPS });
}

async function idleWorkerCost(bench: Bench, { redis, provider }: Sides): Promise<Cost> {
  await using _worker = await startWorker(bench, { redisUrl: redis.url, providerUrl: provider.origin });
  return await costOfIdling(bench, redis, "worker");
}

async function costOfIdling(bench: Bench, redis: BenchRedis, name: string): Promise<Cost> {
  const idle = () => wait(IDLE_SECONDS * MS_PER_SECOND);
  await wait(IDLE_WARMUP_MS);
  const traffic = await watchCommands(redis, idle);
  const bytes = await countBytes(redis, idle);
  return perStep(bench, { name: `a second of an idle ${name}`, traffic, bytes, steps: IDLE_SECONDS });
}

async function deliveryCost(
  bench: Bench,
  { redis, provider }: Sides,
  side: "worker" | "bare worker",
): Promise<Cost> {
  const isOurs = side === "worker";
  const place = { redisUrl: redis.url, providerUrl: provider.origin };
  const startWorkerOf = () => (isOurs ? startWorker : startBareWorker)(bench, place);
  const watchOnce = async <T>(watch: (redis: BenchRedis, run: () => Promise<unknown>) => Promise<T>) => {
    const filling = { redisUrl: redis.url, prefix: freshPrefix(), count: WARMUP_STEPS + 2 * STEPS };
    await (isOurs ? fillQueued : fillNaive)(filling);
    const [from, to] = [WARMUP_STEPS, WARMUP_STEPS + STEPS];
    return duringDeliveries({ provider, from, to, startWorker: startWorkerOf }, ({ last }) =>
      watch(redis, () => last),
    );
  };
  const traffic = await watchOnce(watchCommands);
  const bytes = await watchOnce(countBytes);
  return perStep(bench, { name: `delivery, ${side}`, traffic, bytes, steps: STEPS });
}

interface Watched {
  readonly name: string;
  readonly traffic: RedisTraffic;
  readonly bytes: RedisBytes;
  readonly steps: number;
}

function perStep({ say }: Bench, { name, traffic, bytes, steps }: Watched): Cost {
  const shown = [...traffic.names]
    .toSorted(([, a], [, b]) => b - a)
    .filter(([, count]) => count / steps >= SHOWN_FROM)
    .map(([command, count]) => `${command} ${(count / steps).toFixed(2)}`);
  say(`${name}: ${shown.join(", ")}`);
  return {
    sent: traffic.sent / steps,
    inScripts: traffic.inScripts / steps,
    in: bytes.in / steps,
    out: bytes.out / steps,
  };
}

function figuresOf(
  step: string,
  cost: Cost,
  against?: { readonly name: string; readonly cost: Cost },
): Figure[] {
  const figure = (what: string, unit: string, value: (cost: Cost) => number): Figure => ({
    part: "redis",
    what: `${what}, ${step}`,
    unit,
    ours: [value(cost)],
    ...(against === undefined ? {} : { against: { name: against.name, values: [value(against.cost)] } }),
  });
  return [
    figure("commands sent", "", ({ sent }) => sent),
    figure("commands that scripts ran", "", ({ inScripts }) => inScripts),
    figure("bytes to Redis", "B", (one) => one.in),
    figure("bytes from Redis", "B", (one) => one.out),
  ];
}
