/**
 * Guards against the loss and the doubling of money: traffic of two publishers while processes, Redis, wires
 * and the provider are hurt as in `npm run chaos`, for some seconds. docs/chaos.md tells what is checked.
 */
import { expect, test } from "vitest";
import { describeFault } from "./chaos/fault.ts";
import { planFaults } from "./chaos/fault-plan.ts";
import { FAULT_NAMES } from "./chaos/options.mjs";
import { formatChecks } from "./chaos/report.ts";
import { runChaos } from "./chaos/run-chaos.ts";

const DURATION_MS = 15_000;
const SEED = Number(process.env["ADRELAY_SEED"] ?? Date.now() % 1_000_000);

test(`none is lost, doubled or miscounted under ${DURATION_MS / 1000} s of faults (seed ${SEED})`, async () => {
  const said: string[] = [];
  const { checks, summary } = await runChaos({
    seed: SEED,
    durationMs: DURATION_MS,
    faults: FAULT_NAMES,
    lanes: 8,
    pauseMs: 150,
    deliveryAgeMaxMs: 12_000,
    say: (line) => said.push(line),
  });
  console.log(`seed ${SEED}: ${summary}`);
  const broken = checks.filter((check) => check.broken.length > 0);
  expect(broken, `${said.join("\n")}\n${formatChecks(checks)}`).toEqual([]);
}, 300_000);

test("the same seed draws the same plan of faults, another one another", () => {
  const draw = (seed: number) =>
    planFaults({ seed, durationMs: 600_000, faults: FAULT_NAMES }).map(
      (planned) => `${planned.atMs} ${describeFault(planned)}`,
    );
  expect(draw(7)).toEqual(draw(7));
  expect(draw(7)).not.toEqual(draw(8));
});

test("a plan of a minute has every fault in it", () => {
  const plan = planFaults({ seed: 1, durationMs: 60_000, faults: FAULT_NAMES });
  expect(new Set(plan.map(({ name }) => name))).toEqual(new Set(FAULT_NAMES));
});
