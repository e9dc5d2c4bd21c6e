/** `npm run chaos`: runs under faults, then prints a table of the checks. The bootstrap starts it. */
import { join } from "node:path";
import { provideRedis } from "@adrelay/dev-servers";
import { describeFault, formatChecks, haveAllHeld, planFaults, runChaos } from "../e2e/chaos/index.ts";
import { CHAOS_COMMAND, type ChaosOptions } from "../e2e/chaos/options.mjs";
import { optionsOrExit } from "./bootstrap/command-line.mjs";
import { longRun } from "./long-run.ts";

const NAME = "npm run chaos";
const SEED_MAX = 1_000_000;
/** Shorter than a run, so that long outages also cause dead letters. */
const DELIVERY_AGE_MAX_MS = 30_000;
const LANES = 12;
const PAUSE_MS = 150;

type SeededOptions = ChaosOptions & { readonly seed: number };

const say = (line: string) => console.log(line);

const parsed = optionsOrExit(NAME, CHAOS_COMMAND);
const options = { ...parsed, seed: parsed.seed ?? Math.floor(Math.random() * SEED_MAX) };
if (options.isPlanOnly) {
  showPlan(options);
} else {
  await longRun({ name: NAME, run: async () => (await provideRedis(say)) && runAll(options) });
}

function showPlan({ seed, durationMs, faults }: SeededOptions): void {
  say(`seed ${seed}`);
  for (const planned of planFaults({ seed, durationMs, faults })) {
    say(`${(planned.atMs / 1000).toFixed(1).padStart(6)} s ${describeFault(planned)}`);
  }
}

/** Runs all seeds one after the other. Resolves to whether everything held. */
async function runAll(all: SeededOptions): Promise<boolean> {
  const seeds = Array.from({ length: all.runs }, (_, at) => all.seed + at);
  const failed: number[] = [];
  for (const seed of seeds) {
    if (!(await runOne(all, seed))) {
      failed.push(seed);
    }
  }
  if (seeds.length > 1) {
    say(`\nall checks held with ${seeds.length - failed.length} of ${seeds.length} seeds`);
  }
  for (const seed of failed) {
    say(
      `To repeat it: npm run chaos -- --seconds ${all.durationMs / 1000} --seed ${seed}${chosenFaults(all)}`,
    );
  }
  return failed.length === 0;
}

function chosenFaults({ faults, isChoice }: ChaosOptions): string {
  return isChoice ? ` --faults ${faults.join(",")}` : "";
}

async function runOne({ durationMs, faults, logsDir }: ChaosOptions, seed: number): Promise<boolean> {
  say(`\nseed ${seed}: ${durationMs / 1000} s of traffic and faults`);
  const logsOf = logsDir === undefined ? undefined : join(logsDir, `seed-${seed}`);
  const traffic = { lanes: LANES, pauseMs: PAUSE_MS, deliveryAgeMaxMs: DELIVERY_AGE_MAX_MS };
  const { checks, summary } = await runChaos({ seed, durationMs, faults, ...traffic, logsDir: logsOf, say });
  say(`\nseed ${seed}: ${summary}\n\n${formatChecks(checks)}`);
  return haveAllHeld(checks);
}
