/**
 * Measures what the model proxy costs beside a bare one: the time to the first byte of a stream, CPU time, and memory. The model
 * sends events of 40 characters, one in each write. The rounds of all sides alternate. The processes run the whole time, but
 * each measurement of memory has new ones.
 */
import type { Figure } from "../figures.ts";
import { runLoad, startLoadGenerator } from "../load.ts";
import type { BenchChild, Pids } from "../processes.ts";
import { type Bench, COLD_WARMUP_MS, inTurns } from "../rounds.ts";
import {
  type Served,
  startBareModelProxy,
  startBenchRedis,
  startModel,
  startNaiveAdProxy,
  startProvider,
  startProxy,
} from "../sides.ts";
import { modelNameOf, runStreams, type StreamRound, startStreamGenerator } from "../streams/stream-load.ts";
import { injectionPlan } from "./injection.ts";
import { figuresOfMemory, figuresOfStreams } from "./proxy-figures.ts";
import {
  LARGE_REQUESTS,
  LOADS,
  type LoadName,
  type MemoryRounds,
  type Place,
  type Side,
  type StreamRounds,
  streamPlan,
  type TimedSide,
} from "./proxy-loads.ts";
import { measurePeers } from "./proxy-peers.ts";

const OPEN_STREAMS = 1000;
/** They outlast the measurement. */
const OPEN_FORM = { events: 10_000, pauseMs: 250 };
const LARGE_BYTES = 20_000_000;

interface Running {
  readonly generator: BenchChild;
  readonly servers: Readonly<Record<"bare" | "naive" | "proxy", Served>>;
  readonly pids: Pids;
}

export async function measureProxy(bench: Bench): Promise<Figure[]> {
  await using redis = await startBenchRedis();
  await using provider = await startProvider(bench);
  await using model = await startModel(bench);
  const place = { redisUrl: redis.url, providerUrl: provider.origin, modelUrl: model.origin };
  const pids = { redis: redis.pid, model: model.pid };
  const streams = await measureStreams(bench, place, { provider, pids });
  const memory = await measureMemory(bench, place);
  const peers = bench.hasPeers ? await measurePeers(bench, place) : [];
  return [...figuresOfStreams(streams), ...figuresOfMemory(memory), ...peers];
}

async function measureStreams(
  bench: Bench,
  place: Place,
  { provider, pids }: { readonly provider: Served; readonly pids: Pids },
): Promise<StreamRounds> {
  await using bare = await startBareModelProxy(bench, place);
  await using naive = await startNaiveAdProxy(bench, place);
  await using proxy = await startProxy(bench, place);
  await using generator = await startStreamGenerator(bench.folder);
  const running = { generator, servers: { bare, naive, proxy }, pids };
  const measure = (load: LoadName) => inTurns(bench.rounds, sidesAt(bench, running, load));
  // The rarest calls come last: by then their code is compiled.
  const loads = { short: await measure("short"), many: await measure("many"), one: await measure("one") };
  return { loads, adServiceP50Ms: await measureAdService(bench, provider) };
}

function sidesAt(bench: Bench, { generator, servers, pids }: Running, load: LoadName) {
  const run = (side: TimedSide) => async () => {
    const { form, perSecond } = LOADS[load];
    const server = side === "bare" || side === "naive" ? servers[side] : servers.proxy;
    const plan = streamPlan(server, { form, side, bench });
    const pace = { kind: "rate", perSecond } as const;
    const round = await runStreams(generator, { ...plan, pace }, { ...pids, server: server.pid });
    bench.say(`proxy, ${load}, ${side}: ${describe(round)}`);
    return round;
  };
  return { bare: run("bare"), naive: run("naive"), plain: run("plain"), ad: run("ad") };
}

/** The ad service without a proxy, asked as rarely as by the proxy in the load of one stream. */
async function measureAdService(bench: Bench, provider: Served): Promise<number[]> {
  await using generator = await startLoadGenerator(bench.folder);
  const plan = { ...injectionPlan(provider, 1, bench.roundMs), ratePerSecond: LOADS.one.perSecond };
  const { rounds } = await inTurns(bench.rounds, { rounds: () => runLoad(generator, plan, {}) });
  return rounds.map(({ p50Ms }) => p50Ms);
}

async function measureMemory(bench: Bench, place: Place): Promise<MemoryRounds> {
  const sides = (name: string, run: (fresh: Fresh) => Promise<StreamRound>) => {
    const side = (which: Side) => async () => {
      const round = await withFresh(bench, place, which, run);
      bench.say(`proxy, ${name}, ${which}: ${(round.grownBytes / 1e6).toFixed(0)} MB`);
      return round;
    };
    return { bare: side("bare"), plain: side("plain"), ad: side("ad") };
  };
  const open = sides(`${OPEN_STREAMS} open streams`, runOpenStreams);
  // They are too long for an ad.
  const { ad: _, ...large } = sides(`${LARGE_REQUESTS} large requests`, runLargeRequests);
  return { open: await inTurns(bench.rounds, open), large: await inTurns(bench.rounds, large) };
}

interface Fresh {
  readonly bench: Bench;
  readonly side: Side;
  readonly server: Served;
  readonly generator: BenchChild;
}

/** Runs with a new process that has compiled its code. */
async function withFresh(
  bench: Bench,
  place: Place,
  side: Side,
  run: (fresh: Fresh) => Promise<StreamRound>,
): Promise<StreamRound> {
  await using server = await (side === "bare" ? startBareModelProxy : startProxy)(bench, place);
  await using generator = await startStreamGenerator(bench.folder);
  const { form, perSecond } = LOADS.short;
  const warmUp = { ...streamPlan(server, { form, side, bench }), warmupMs: COLD_WARMUP_MS, durationMs: 1 };
  await runStreams(generator, { ...warmUp, pace: { kind: "rate", perSecond } }, { server: server.pid });
  // Awaited here: at the end of this function both processes stop.
  return await run({ bench, side, server, generator });
}

function runOpenStreams({ bench, side, server, generator }: Fresh): Promise<StreamRound> {
  const plan = streamPlan(server, { form: OPEN_FORM, side, bench });
  const pace = { kind: "closed", streams: OPEN_STREAMS } as const;
  return runStreams(generator, { ...plan, pace }, { server: server.pid });
}

function runLargeRequests({ bench, side, server, generator }: Fresh): Promise<StreamRound> {
  const plan = streamPlan(server, { form: LOADS.short.form, side, bench });
  const body = { kind: "large", model: modelNameOf(LOADS.short.form), bytes: LARGE_BYTES } as const;
  const pace = { kind: "closed", streams: LARGE_REQUESTS } as const;
  return runStreams(generator, { ...plan, body, pace, warmupMs: 1 }, { server: server.pid });
}

function describe({ firstByteP50Ms, firstByteP99Ms, openMax, count, cpuMs }: StreamRound): string {
  const cpu = `${(((cpuMs["server"] ?? 0) * 1000) / count).toFixed(0)} µs of CPU a stream`;
  return `p50 ${firstByteP50Ms.toFixed(2)} ms, p99 ${firstByteP99Ms.toFixed(2)} ms, ${openMax} open, ${cpu}`;
}
