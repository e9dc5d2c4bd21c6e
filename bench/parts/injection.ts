/**
 * Measures the latency that the gateway adds to a direct call of the provider, and compares its throughput with a bare
 * Express proxy. All processes run the whole time; their rounds alternate. In a closed loop with many connections on few
 * cores, the latency is mostly the wait for a turn. The open loop has a rate that all sides can serve: it shows how long
 * a caller waits for a gateway that is not saturated.
 */
import { API_KEY_HEADER, INJECTION_PATH } from "@adrelay/contract";
import { TEST_API_KEY, TEST_INJECTION } from "@adrelay/testkit";
import { atLeast, atMost, type Figure, type Promised } from "../figures.ts";
import { type LoadPlan, type LoadRound, runLoad, startLoadGenerator } from "../load.ts";
import type { BenchChild, Pids } from "../processes.ts";
import { type Bench, inTurns, WARMUP_MS } from "../rounds.ts";
import {
  type Served,
  type Surroundings,
  startBareProxy,
  startBenchRedis,
  startGateway,
  startProvider,
} from "../sides.ts";

interface Load {
  readonly connections: number;
  /** With a rate it is an open loop, without one a closed loop. */
  readonly ratePerSecond?: number;
}

const LOADS: readonly Load[] = [
  { connections: 1 },
  { connections: 16 },
  { connections: 16, ratePerSecond: 500 },
  { connections: 64 },
];
const THROUGHPUT_CONNECTIONS = 64;
const US_PER_MS = 1000;
const NO_QUOTAS = {
  QUOTA_REQUESTS_PER_SECOND: "off",
  QUOTA_BURST: "off",
  QUOTA_BYTES_PER_SECOND: "off",
  QUOTA_INJECTIONS_IN_FLIGHT: "off",
  QUOTA_BYTES_IN_FLIGHT: "off",
};
const SESSION_HASHES = { SESSION_HASH_KEYS: "a-key-that-only-the-benchmark-uses" };
/** The promises about added latency, by load. */
const PROMISES: Readonly<Record<string, Promised>> = {
  "p50, 1 connections": atMost("value", 1),
  "p99, 16 connections": atMost("value", 5),
};

interface Sides {
  readonly generator: BenchChild;
  readonly provider: Served;
  readonly gateway: Served;
  readonly proxy: Served;
  readonly pids: Pids;
}

interface Rounds {
  readonly direct: readonly LoadRound[];
  readonly gateway: readonly LoadRound[];
  readonly proxy: readonly LoadRound[];
}

export async function measureInjection(bench: Bench): Promise<Figure[]> {
  await using redis = await startBenchRedis();
  await using provider = await startProvider(bench);
  const place = { redisUrl: redis.url, providerUrl: provider.origin };
  await using gateway = await startGateway(bench, place);
  await using proxy = await startBareProxy(bench, place);
  await using generator = await startLoadGenerator(bench.folder);
  const pids = { redis: redis.pid, provider: provider.pid, gateway: gateway.pid, proxy: proxy.pid };
  const sides = { generator, provider, gateway, proxy, pids };
  const figures: Figure[] = [];
  for (const load of LOADS) {
    const rounds = await measureAt(bench, sides, load);
    figures.push(...added(rounds, load));
    if (load.connections === THROUGHPUT_CONNECTIONS) {
      figures.push(...throughput(rounds, load.connections));
    }
  }
  return [...figures, ...(await measureVariants(bench, sides, place))];
}

/** Compares the throughput of the gateway with that of itself under other settings, in the same rounds. All are new processes. */
async function measureVariants(bench: Bench, { generator }: Sides, place: Surroundings): Promise<Figure[]> {
  await using standard = await startGateway(bench, place);
  await using unlimited = await startGateway(bench, { ...place, env: NO_QUOTAS });
  await using hashing = await startGateway(bench, { ...place, env: SESSION_HASHES });
  const run = (name: string, server: Served) => async () => {
    const plan = injectionPlan(server, THROUGHPUT_CONNECTIONS, bench.roundMs);
    const round = await runLoad(generator, plan, { gateway: server.pid });
    bench.say(`injection, ${name}: ${round.ratePerSecond.toFixed(0)}/s`);
    return round;
  };
  const rounds = await inTurns(bench.rounds, {
    default: run("gateway", standard),
    unlimited: run("gateway without quotas", unlimited),
    hashing: run("gateway with session hashes", hashing),
  });
  return [
    ...compareVariants("with quotas", rounds.default, { name: "without quotas", rounds: rounds.unlimited }),
    ...compareVariants("with session hashes", rounds.hashing, {
      name: "without hashes",
      rounds: rounds.default,
    }),
  ];
}

function compareVariants(
  what: string,
  ours: readonly LoadRound[],
  against: { readonly name: string; readonly rounds: readonly LoadRound[] },
): Figure[] {
  const figure = (name: string, unit: string, value: (round: LoadRound) => number): Figure => ({
    part: "injection",
    what: `${name} ${what}`,
    unit,
    ours: ours.map(value),
    against: { name: against.name, values: against.rounds.map(value) },
  });
  const cpuUs = ({ cpuMs, count }: LoadRound) => ((cpuMs["gateway"] ?? 0) * US_PER_MS) / count;
  return [
    { ...figure("injections", "/s", (round) => round.ratePerSecond), promise: atLeast("ratio", 0.97) },
    figure("CPU of the gateway per injection", "µs", cpuUs),
  ];
}

function describeLoad({ connections, ratePerSecond }: Load): string {
  return `${connections} connections${ratePerSecond === undefined ? "" : ` at ${ratePerSecond}/s`}`;
}

function measureAt(bench: Bench, sides: Sides, load: Load): Promise<Rounds> {
  const run = (name: "provider" | "gateway" | "proxy") => async () => {
    const { connections, ratePerSecond } = load;
    const plan = { ...injectionPlan(sides[name], connections, bench.roundMs), ratePerSecond };
    const round = await runLoad(sides.generator, plan, sides.pids);
    const rate = round.ratePerSecond.toFixed(0);
    bench.say(`injection, ${name}, ${describeLoad(load)}: ${rate}/s, p50 ${round.p50Ms.toFixed(2)} ms`);
    return round;
  };
  return inTurns(bench.rounds, { direct: run("provider"), gateway: run("gateway"), proxy: run("proxy") });
}

export function injectionPlan(
  { origin }: Served,
  connections: number,
  durationMs: number,
): Omit<LoadPlan, "kind"> {
  return {
    origin,
    path: INJECTION_PATH,
    headers: { [API_KEY_HEADER]: TEST_API_KEY, "content-type": "application/json" },
    connections,
    body: { kind: "fixed", text: JSON.stringify(TEST_INJECTION) },
    status: 200,
    length: { kind: "time", warmupMs: WARMUP_MS, durationMs },
  };
}

function added({ direct, gateway, proxy }: Rounds, load: Load): Figure[] {
  const over = (rounds: readonly LoadRound[], of: "p50Ms" | "p99Ms") =>
    rounds.map((round, at) => round[of] - (direct[at]?.[of] ?? Number.NaN));
  return (["p50", "p99"] as const).map((name) => {
    const promise = PROMISES[`${name}, ${describeLoad(load)}`];
    return {
      part: "injection",
      what: `added ${name} over the provider, ${describeLoad(load)}`,
      unit: "ms",
      ours: over(gateway, `${name}Ms`),
      against: { name: "bare proxy", values: over(proxy, `${name}Ms`) },
      ...(promise === undefined ? {} : { promise }),
    };
  });
}

function throughput({ gateway, proxy }: Rounds, connections: number): Figure[] {
  const cpuUs = ({ cpuMs, count }: LoadRound, process: string) => ((cpuMs[process] ?? 0) * US_PER_MS) / count;
  const name = "bare proxy";
  return [
    {
      part: "injection",
      what: `injections, ${connections} connections`,
      unit: "/s",
      ours: gateway.map((round) => round.ratePerSecond),
      against: { name, values: proxy.map((round) => round.ratePerSecond) },
      promise: atLeast("ratio", 0.7),
    },
    {
      part: "injection",
      what: "CPU of the server per injection",
      unit: "µs",
      ours: gateway.map((round) => cpuUs(round, "gateway")),
      against: { name, values: proxy.map((round) => cpuUs(round, "proxy")) },
    },
    {
      part: "injection",
      what: "CPU of Redis per injection",
      unit: "µs",
      ours: gateway.map((round) => cpuUs(round, "redis")),
    },
  ];
}
