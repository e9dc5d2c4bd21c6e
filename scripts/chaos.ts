/** `npm run chaos`: runs under faults, and the table of what held. Started by the bootstrap. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { provideRedis } from "@adrelay/dev-servers";
import { describeFault } from "../e2e/chaos/fault.ts";
import { planFaults } from "../e2e/chaos/fault-plan.ts";
import { formatChecks, hasHeld } from "../e2e/chaos/report.ts";
import { runChaos } from "../e2e/chaos/run-chaos.ts";
import type { ChaosOptions } from "./bootstrap/chaos-options.mjs";
import { parseChaosOptions } from "./bootstrap/command-line.mjs";
import { leaveOnSignals, makeLeave } from "./leave.ts";
import { optionsOrExit } from "./options-or-exit.ts";

const EXIT_BROKEN = 1;
const SEED_MAX = 1_000_000;
/** A run is longer than the age limit of deliveries, so that outages of it make dead letters too. */
const DELIVERY_AGE_MAX_MS = 30_000;
const LANES = 12;
const PAUSE_MS = 150;

const say = (line: string) => console.log(line);

await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  const options = optionsOrExit(
    "npm run chaos",
    parseChaosOptions(args, Math.floor(Math.random() * SEED_MAX)),
  );
  if (options.isPlanOnly) {
    showPlan(options);
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), "adrelay-chaos-run-"));
  // All folders of the run, Redis' data among them, go with this one.
  process.env["TMPDIR"] = folder;
  const leave = makeLeave(folder);
  leaveOnSignals("npm run chaos", leave);
  if (!(await provideRedis(say))) {
    return leave(EXIT_BROKEN);
  }
  const hasAllHeld = await runAll(options).catch((error: unknown) => {
    console.error(error);
    return false;
  });
  await leave(hasAllHeld ? 0 : EXIT_BROKEN);
}

function showPlan({ seed, durationMs, faults }: ChaosOptions): void {
  say(`seed ${seed}`);
  for (const planned of planFaults({ seed, durationMs, faults })) {
    say(`${(planned.atMs / 1000).toFixed(1).padStart(6)} s ${describeFault(planned)}`);
  }
}

async function runAll(options: ChaosOptions): Promise<boolean> {
  const seeds = Array.from({ length: options.runs }, (_, at) => options.seed + at);
  const failed: number[] = [];
  for (const seed of seeds) {
    if (!(await runOne(options, seed))) {
      failed.push(seed);
    }
  }
  if (seeds.length > 1) {
    say(`\n${seeds.length - failed.length} of ${seeds.length} seeds held`);
  }
  for (const seed of failed) {
    say(
      `repeat it: npm run chaos -- --seconds ${options.durationMs / 1000} --seed ${seed}${chosen(options)}`,
    );
  }
  return failed.length === 0;
}

function chosen({ faults, isChoice }: ChaosOptions): string {
  return isChoice ? ` --faults ${faults.join(",")}` : "";
}

async function runOne({ durationMs, faults, logsDir }: ChaosOptions, seed: number): Promise<boolean> {
  say(`\nseed ${seed}: ${durationMs / 1000} s of traffic and faults`);
  const logsOf = logsDir === undefined ? undefined : join(logsDir, `seed-${seed}`);
  const traffic = { lanes: LANES, pauseMs: PAUSE_MS, deliveryAgeMaxMs: DELIVERY_AGE_MAX_MS };
  const { checks, summary } = await runChaos({ seed, durationMs, faults, ...traffic, logsDir: logsOf, say });
  say(`\nseed ${seed}: ${summary}\n\n${formatChecks(checks)}`);
  return hasHeld(checks);
}
