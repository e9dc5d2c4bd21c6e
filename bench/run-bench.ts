import type { BenchPart } from "../scripts/bootstrap/bench-options.mjs";
import type { Bench } from "./bench.ts";
import type { Figure } from "./figures/figure.ts";
import { measureDelivery } from "./parts/delivery.ts";
import { measureGrowth } from "./parts/growth.ts";
import { measureInjection } from "./parts/injection.ts";
import { measureIntake } from "./parts/intake.ts";
import { measureProcesses } from "./parts/processes.ts";
import { measureRedis } from "./parts/redis.ts";

const MEASURES: Readonly<Record<BenchPart, (bench: Bench) => Promise<Figure[]>>> = {
  intake: measureIntake,
  delivery: measureDelivery,
  injection: measureInjection,
  redis: measureRedis,
  growth: measureGrowth,
  processes: measureProcesses,
};

/** Measures the chosen parts one after the other. */
export async function runBench(bench: Bench): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const part of bench.parts) {
    bench.say(`\n${part}`);
    figures.push(...(await MEASURES[part](bench)));
  }
  return figures;
}
