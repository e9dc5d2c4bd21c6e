/** `npm run bench`: Adrelay beside the naive version of it, and one table. Started by the bootstrap. */
import { mkdirSync } from "node:fs";
import type { Bench } from "../bench/bench.ts";
import { holds } from "../bench/figures/figure.ts";
import { describeMachine, formatMachine } from "../bench/figures/machine.ts";
import { writeResults } from "../bench/figures/results-file.ts";
import { formatTable, formatVerdict } from "../bench/figures/table.ts";
import { runBench } from "../bench/run-bench.ts";
import { runBenchmark } from "./bench/bench-run.ts";
import { parseBenchOptions } from "./bootstrap/command-line.mjs";
import { optionsOrExit } from "./options-or-exit.ts";

await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  const options = optionsOrExit("npm run bench", parseBenchOptions(args));
  const say = options.isJson ? console.error : console.log;
  const measure = (folder: string) => bench({ ...options, folder, say });
  await runBenchmark({ name: "npm run bench", say, measure });
}

/** Whether every promise that was measured holds. */
async function bench(bench: Bench): Promise<boolean> {
  if (bench.profileDir !== undefined) {
    mkdirSync(bench.profileDir, { recursive: true });
  }
  const machine = await describeMachine();
  bench.say(formatMachine(machine));
  const figures = await runBench(bench);
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
