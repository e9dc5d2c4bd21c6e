import { mkdirSync } from "node:fs";
import { type Figure, holds } from "./figures.ts";
import type { BenchPart } from "./options.mjs";
import { measureAbuse } from "./parts/abuse.ts";
import { measureDelivery } from "./parts/delivery.ts";
import { measureGrowth } from "./parts/growth.ts";
import { measureInjection } from "./parts/injection.ts";
import { measureIntake } from "./parts/intake.ts";
import { measureProcesses } from "./parts/processes.ts";
import { measureProxy } from "./parts/proxy.ts";
import { measureRedis } from "./parts/redis.ts";
import { measureTurns } from "./parts/turns.ts";
import { describeMachine, formatMachine, formatTable, formatVerdict, writeResults } from "./report.ts";
import type { Bench } from "./rounds.ts";

const MEASURES: Readonly<Record<BenchPart, (bench: Bench) => Promise<Figure[]>>> = {
  intake: measureIntake,
  delivery: measureDelivery,
  turns: measureTurns,
  injection: measureInjection,
  proxy: measureProxy,
  redis: measureRedis,
  growth: measureGrowth,
  processes: measureProcesses,
  abuse: measureAbuse,
};

/** Measures the chosen parts and prints the figures. Resolves to whether every measured promise holds. */
export async function runBench(bench: Bench): Promise<boolean> {
  if (bench.profileDir !== undefined) {
    mkdirSync(bench.profileDir, { recursive: true });
  }
  const machine = await describeMachine();
  bench.say(formatMachine(machine));
  const figures = await measure(bench);
  if (bench.isJson) {
    console.log(JSON.stringify({ machine, figures }));
  } else {
    bench.say(`\n${formatTable(figures)}\n\n${formatVerdict(figures)}`);
  }
  if (bench.isWritten) {
    writeResults(bench, machine, figures);
  }
  return figures.every((figure) => holds(figure) !== false);
}

/** Measures the parts one after the other. */
async function measure(bench: Bench): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const part of bench.parts) {
    bench.say(`\n${part}`);
    figures.push(...(await MEASURES[part](bench)));
  }
  return figures;
}
