/**
 * Guards against losing what a model has written to a user, or counting its ad twice or not at all: streams and tool loops through
 * two proxies, with the faults of `npm run chaos -- --only turns`. docs/chaos.md lists the checks.
 */
import { expect, test } from "vitest";
import { formatChecks } from "./chaos/checks/check.ts";
import { describeTurnFault, planTurnFaults } from "./chaos/turns/faults.ts";
import { TURN_WAIT_MS } from "./chaos/turns/loops.ts";
import { runTurns } from "./chaos/turns/run-turns.ts";
import { planStreams } from "./chaos/turns/streams.ts";

const TRAFFIC_MS = 6000;
const SEED = Number(process.env["ADRELAY_SEED"] ?? Date.now() % 1_000_000);

test(`no turn is lost, doubled or missed in ${TRAFFIC_MS / 1000} s of faults (seed ${SEED})`, async () => {
  const printed: string[] = [];
  const { checks, summary } = await runTurns({
    seed: SEED,
    streams: 40,
    trafficMs: TRAFFIC_MS,
    hasLongFreezes: false,
    say: (line) => printed.push(line),
  });
  console.log(`seed ${SEED}: ${summary}`);
  const broken = checks.filter((check) => check.broken.length > 0);
  expect(broken, `${printed.join("\n")}\n${formatChecks(checks)}`).toEqual([]);
}, 300_000);

test("a seed always draws the same streams and faults of turns", () => {
  const draw = (seed: number) => ({
    streams: planStreams({ seed, streams: 50, trafficMs: 10_000 }),
    faults: planTurnFaults({ seed, trafficMs: 10_000, hasLongFreezes: true }).map(
      (planned) => `${planned.atMs} ${describeTurnFault(planned)}`,
    ),
  });
  expect(draw(7)).toEqual(draw(7));
  expect(draw(7)).not.toEqual(draw(8));
});

test("in twenty seeds callers hang up before the answer and at each early event", () => {
  const places = Array.from({ length: 20 }, (_, seed) =>
    planStreams({ seed, streams: 50, trafficMs: 10_000 }).flatMap(({ steps }) =>
      steps.flatMap(({ caller }) => (caller.kind === "hangs_up" ? [caller.atEvent] : [])),
    ),
  ).flat();
  expect(new Set(places)).toEqual(new Set([...places, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8]));
});

test("in twenty seeds half of the streams are tool loops, and each form of a loop comes in many of them", () => {
  const plans = Array.from({ length: 20 }, (_, seed) =>
    planStreams({ seed, streams: 50, trafficMs: 10_000 }),
  ).flat();
  const loops = plans.flatMap((plan) => (plan.loop === undefined ? [] : [{ ...plan, loop: plan.loop }]));
  expect(Math.abs(loops.length / plans.length - 0.5)).toBeLessThan(0.05);
  const forms = {
    "at once": loops.filter(({ loop }) => loop.answersAtOnce),
    "lacks steps": loops.filter(({ loop, steps }) => !loop.answersAtOnce && steps.length <= loop.rounds),
    late: loops.filter(({ steps }) => steps.some(({ afterMs }) => afterMs > TURN_WAIT_MS)),
    "with the same ids": loops.filter(({ loop }) => loop.areNumbered),
    "after another": loops.filter(({ follows }) => follows !== undefined),
    "calls taken": loops.filter(({ steps }) => steps.some(({ caller }) => caller.kind === "takes_calls")),
    refused: loops.filter(({ isRefused }) => isRefused),
    "acknowledged by backends": loops.filter(({ acknowledges }) => acknowledges !== "proxy"),
  };
  const rare = Object.entries(forms).filter(([, some]) => some.length < 20);
  expect(rare).toEqual([]);
});
