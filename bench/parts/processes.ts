/** Compares the start-up time of each process, and its memory at rest and under load, with the naive processes. */
import { setTimeout as wait } from "node:timers/promises";
import type { Figure } from "../figures.ts";
import { freshPrefix, runLoad, startLoadGenerator } from "../load.ts";
import { type BenchChild, rssBytesOf } from "../processes.ts";
import { type Bench, inTurns } from "../rounds.ts";
import {
  type Served,
  type Surroundings,
  startBareWorker,
  startBenchRedis,
  startGateway,
  startNaiveServer,
  startProvider,
  startWorker,
} from "../sides.ts";
import { intakePlan } from "./intake.ts";

const REST_MS = 3000;

/** The measurements of one process. */
interface Measured {
  readonly startMs: number;
  readonly atRestBytes: number;
  readonly atLoadBytes: number;
}

interface Pair {
  readonly server: Measured;
  readonly worker: Measured;
}

export async function measureProcesses(bench: Bench): Promise<Figure[]> {
  await using provider = await startProvider(bench);
  const rounds = await inTurns(bench.rounds, {
    naive: () => runPair(bench, provider, { startServer: startNaiveServer, startWorker: startBareWorker }),
    ours: () => runPair(bench, provider, { startServer: startGateway, startWorker }),
  });
  return [
    ...figuresOf("gateway", pick(rounds.ours, "server"), {
      name: "naive server",
      rounds: pick(rounds.naive, "server"),
    }),
    ...figuresOf("worker", pick(rounds.ours, "worker"), {
      name: "bare worker",
      rounds: pick(rounds.naive, "worker"),
    }),
  ];
}

function pick(rounds: readonly Pair[], process: keyof Pair): readonly Measured[] {
  return rounds.map((pair) => pair[process]);
}

interface Starts {
  readonly startServer: (bench: Bench, place: Surroundings) => Promise<Served>;
  readonly startWorker: (bench: Bench, place: Surroundings) => Promise<BenchChild>;
}

/** Measures both processes of a side at rest, and then under a load of acknowledgments. */
async function runPair(bench: Bench, provider: Served, starts: Starts): Promise<Pair> {
  await using redis = await startBenchRedis();
  const place = { redisUrl: redis.url, providerUrl: provider.origin };
  await using server = await starts.startServer(bench, place);
  await using worker = await starts.startWorker(bench, place);
  await using generator = await startLoadGenerator(bench.folder);
  await wait(REST_MS);
  const atRest = { server: rssBytesOf(server.pid), worker: rssBytesOf(worker.pid) };
  await runLoad(generator, intakePlan(server, bench.roundMs, freshPrefix()), {});
  const measured = (name: keyof Pair, { pid, startMs }: { pid: number; startMs: number }) => {
    return { startMs, atRestBytes: atRest[name], atLoadBytes: rssBytesOf(pid) };
  };
  bench.say(
    `${server.name} up in ${server.startMs.toFixed(0)} ms, ${worker.name} in ${worker.startMs.toFixed(0)} ms`,
  );
  return { server: measured("server", server), worker: measured("worker", worker) };
}

function figuresOf(
  process: string,
  ours: readonly Measured[],
  against: { readonly name: string; readonly rounds: readonly Measured[] },
): Figure[] {
  const figure = (what: string, unit: string, value: (measured: Measured) => number): Figure => ({
    part: "processes",
    what: `${what}, ${process}`,
    unit,
    ours: ours.map(value),
    against: { name: against.name, values: against.rounds.map(value) },
  });
  return [
    figure("from spawn to ready", "ms", ({ startMs }) => startMs),
    figure("RSS at rest", "MB", ({ atRestBytes }) => atRestBytes / 1e6),
    figure("RSS at load", "MB", ({ atLoadBytes }) => atLoadBytes / 1e6),
  ];
}
