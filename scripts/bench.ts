/** `npm run bench`: Adrelay beside the naive version of it, and one table. Started by the bootstrap. */
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Bench } from "../bench/bench.ts";
import { holds } from "../bench/figures/figure.ts";
import { describeMachine, formatMachine } from "../bench/figures/machine.ts";
import { writeResults } from "../bench/figures/results-file.ts";
import { formatTable, formatVerdict } from "../bench/figures/table.ts";
import { runBench } from "../bench/run-bench.ts";
import { parseBenchOptions } from "./bootstrap/command-line.mjs";
import { leaveOnSignals, makeLeave } from "./leave.ts";
import { provideRedis } from "./test/redis-choice.ts";

const REDIS_CACHE = fileURLToPath(new URL("../.adrelay/redis-server", import.meta.url));
const EXIT_BROKEN = 1;
const EXIT_USAGE = 2;

await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  const options = parseBenchOptions(args);
  // The bootstrap has checked them: this is for a call of this file alone.
  if (options.kind !== "run") {
    console.error("npm run bench -- --help tells what it takes");
    process.exit(EXIT_USAGE);
  }
  const folder = mkdtempSync(join(tmpdir(), "adrelay-bench-run-"));
  // All folders of the run, Redis' data among them, go with this one.
  process.env["TMPDIR"] = folder;
  // Its CPU time and memory are those of a process of this machine.
  process.env["ADRELAY_TEST_REDIS"] = "local";
  const ending = new AbortController();
  const leave = makeLeave(folder, async () => ending.abort());
  leaveOnSignals("npm run bench", leave);
  process.on("uncaughtException", (error) => {
    console.error(error);
    void leave(EXIT_BROKEN);
  });
  const say = options.isJson ? console.error : console.log;
  if (!(await provideRedis(REDIS_CACHE, say))) {
    return leave(EXIT_BROKEN);
  }
  if (options.profileDir !== undefined) {
    mkdirSync(options.profileDir, { recursive: true });
  }
  const isKept = await bench({ ...options, folder, say }).catch((error: unknown) => {
    // What breaks since everything is being ended says nothing.
    if (!ending.signal.aborted) {
      console.error(error);
    }
    return false;
  });
  await leave(isKept ? 0 : EXIT_BROKEN);
}

/** Whether every promise that was measured holds. */
async function bench(bench: Bench): Promise<boolean> {
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
