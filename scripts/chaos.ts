/** `npm run chaos`: runs under faults, then prints a table of the checks. The bootstrap starts it. */
import { join } from "node:path";
import { provideRedis } from "@adrelay/dev-servers";
import {
  describeFault,
  describeTurnFault,
  formatChecks,
  haveAllHeld,
  planFaults,
  planTurnFaults,
  runChaos,
  runTurns,
} from "../e2e/chaos/index.ts";
import { CHAOS_COMMAND, type ChaosOptions, type ChaosPart } from "../e2e/chaos/options.mjs";
import { optionsOrExit } from "./bootstrap/command-line.mjs";
import { longRun } from "./long-run.ts";

const NAME = "npm run chaos";
const SEED_MAX = 1_000_000;
/** Shorter than a run, so that long outages also cause dead letters. */
const DELIVERY_AGE_MAX_MS = 30_000;
const LANES = 12;
const PAUSE_MS = 150;
/** New streams through the proxy begin for so long. */
const STREAMS_MS = 10_000;

type SeededOptions = ChaosOptions & { readonly seed: number };

const say = (line: string) => console.log(line);

const parsed = optionsOrExit(NAME, CHAOS_COMMAND);
const options = { ...parsed, seed: parsed.seed ?? Math.floor(Math.random() * SEED_MAX) };
if (options.isPlanOnly) {
  showPlan(options);
} else {
  await longRun({ name: NAME, run: async () => (await provideRedis(say)) && runAll(options) });
}

function showPlan({ seed, durationMs, faults, parts }: SeededOptions): void {
  say(`seed ${seed}`);
  const showAt = (atMs: number, text: string) => say(`${(atMs / 1000).toFixed(1).padStart(6)} s ${text}`);
  for (const planned of parts.includes("relay") ? planFaults({ seed, durationMs, faults }) : []) {
    showAt(planned.atMs, describeFault(planned));
  }
  const turnFaults = planTurnFaults({ seed, trafficMs: STREAMS_MS, hasLongFreezes: true });
  for (const planned of parts.includes("turns") ? turnFaults : []) {
    showAt(planned.atMs, `turns: ${describeTurnFault(planned)}`);
  }
}

/** Runs all seeds one after the other. Resolves to whether everything held. */
async function runAll(all: SeededOptions): Promise<boolean> {
  const seeds = Array.from({ length: all.runs }, (_, at) => all.seed + at);
  const failed: { readonly seed: number; readonly part: ChaosPart }[] = [];
  for (const seed of seeds) {
    for (const part of all.parts) {
      if (!(await (part === "relay" ? runRelay : runStreams)(all, seed))) {
        failed.push({ seed, part });
      }
    }
  }
  if (seeds.length > 1) {
    const held = seeds.length - new Set(failed.map(({ seed }) => seed)).size;
    say(`\nall checks held with ${held} of ${seeds.length} seeds`);
  }
  for (const { seed, part } of failed) {
    say(`To repeat it: npm run chaos -- --only ${part} --seed ${seed}${lengthOf(all, part)}`);
  }
  return failed.length === 0;
}

function lengthOf({ durationMs, streams, faults, isChoice }: ChaosOptions, part: ChaosPart): string {
  if (part === "turns") {
    return ` --streams ${streams}`;
  }
  return ` --seconds ${durationMs / 1000}${isChoice ? ` --faults ${faults.join(",")}` : ""}`;
}

async function runRelay({ durationMs, faults, logsDir }: ChaosOptions, seed: number): Promise<boolean> {
  say(`\nseed ${seed}: ${durationMs / 1000} s of traffic and faults`);
  const logsOf = logsDir === undefined ? undefined : join(logsDir, `seed-${seed}`);
  const traffic = { lanes: LANES, pauseMs: PAUSE_MS, deliveryAgeMaxMs: DELIVERY_AGE_MAX_MS };
  const { checks, summary } = await runChaos({ seed, durationMs, faults, ...traffic, logsDir: logsOf, say });
  say(`\nseed ${seed}: ${summary}\n\n${formatChecks(checks)}`);
  return haveAllHeld(checks);
}

async function runStreams({ streams, logsDir }: ChaosOptions, seed: number): Promise<boolean> {
  say(`\nseed ${seed}: ${streams} streams through the model proxy, and faults`);
  const logsOf = logsDir === undefined ? undefined : join(logsDir, `seed-${seed}-turns`);
  const run = { seed, streams, trafficMs: STREAMS_MS, hasLongFreezes: true, logsDir: logsOf, say };
  const { checks, summary } = await runTurns(run);
  say(`\nseed ${seed}: ${summary}\n\n${formatChecks(checks)}`);
  return haveAllHeld(checks);
}
