/**
 * Guards against losing money or counting it twice: some seconds of traffic of two publishers, with the faults of `npm
 * run chaos` in processes, Redis, connections and the provider. docs/chaos.md lists the checks.
 */
import { expect, test } from "vitest";
import { formatChecks } from "./chaos/checks/check.ts";
import { describeFault } from "./chaos/fault.ts";
import { planFaults } from "./chaos/fault-plan.ts";
import { FAULT_NAMES } from "./chaos/options.mjs";
import { runChaos } from "./chaos/run-chaos.ts";

const DURATION_MS = 15_000;
const SEED = Number(process.env["ADRELAY_SEED"] ?? Date.now() % 1_000_000);

test(`no acknowledgment is lost, doubled or miscounted in ${DURATION_MS / 1000} s of faults (seed ${SEED})`, async () => {
  const printed: string[] = [];
  const { checks, summary } = await runChaos({
    seed: SEED,
    durationMs: DURATION_MS,
    faults: FAULT_NAMES,
    lanes: 8,
    pauseMs: 150,
    deliveryAgeMaxMs: 12_000,
    say: (line) => printed.push(line),
  });
  console.log(`seed ${SEED}: ${summary}`);
  const broken = checks.filter((check) => check.broken.length > 0);
  expect(broken, `${printed.join("\n")}\n${formatChecks(checks)}`).toEqual([]);
}, 300_000);

test("a seed always draws the same plan of faults, and another seed another plan", () => {
  const draw = (seed: number) =>
    planFaults({ seed, durationMs: 600_000, faults: FAULT_NAMES }).map(
      (planned) => `${planned.atMs} ${describeFault(planned)}`,
    );
  expect(draw(7)).toEqual(draw(7));
  expect(draw(7)).not.toEqual(draw(8));
});

test("a plan of one minute contains every fault", () => {
  const plan = planFaults({ seed: 1, durationMs: 60_000, faults: FAULT_NAMES });
  expect(new Set(plan.map(({ name }) => name))).toEqual(new Set(FAULT_NAMES));
});
