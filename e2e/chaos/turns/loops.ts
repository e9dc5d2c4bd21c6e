/** The tool loops of a run: what their users ask for, and what happens in their steps. */
import type { Random } from "@adrelay/testkit";
import { CANARY } from "../log-watch.ts";
import {
  type CallerPlan,
  pickProxy,
  planFiller,
  planHangUp,
  planModelFault,
  planRefusal,
  type StepPlan,
} from "./steps.ts";

/** What the user's text asks of the model. Many users ask for the same. */
export interface LoopWish {
  /** How many answers call tools before the last one. */
  readonly rounds: number;
  /** Each of these answers has a text before its calls. */
  readonly saysFirst: boolean;
  readonly callsTwo: boolean;
  /** Each of the two calls is answered by a step of its own, which begins before the first step has ended. */
  readonly answersAtOnce: boolean;
  /** The ids of calls are the same in each answer: `search:0`. */
  readonly areNumbered: boolean;
}

const ROUNDS_MOST = 3;

export function drawWish(random: Random): LoopWish {
  const answersAtOnce = random.chance(0.25);
  return {
    rounds: answersAtOnce ? 1 : random.integer(1, ROUNDS_MOST),
    saysFirst: random.chance(0.7),
    callsTwo: answersAtOnce || random.chance(0.3),
    answersAtOnce,
    areNumbered: random.chance(0.75),
  };
}

/** The words that the demo model knows. */
export function wishedText({ rounds, saysFirst, callsTwo, areNumbered }: LoopWish): string {
  return [
    `I am ${CANARY}.`,
    ...(saysFirst ? ["Say so first."] : []),
    `Then use ${callsTwo ? "two tools" : "the tool"} in ${rounds} rounds.`,
    ...(areNumbered ? ["Please number the calls."] : []),
  ].join(" ");
}

/** A turn waits for its next step for PROXY_TURN_WAIT_MS. */
export const TURN_WAIT_MS = 2000;
const LATE_MS = [TURN_WAIT_MS + 200, 2 * TURN_WAIT_MS] as const;
const TOOLS_MS = [0, 0, 0, 50, 300];
/** Shorter than a single answer's, because there are several. */
const LASTS_MS = [0, 100, 500, 1500];
/** The second step must be able to begin before the first has ended. */
const AT_ONCE_DELAYS_MS = [60, 150, 300];
const EVENTS_OF_CALLS = 8;

/** One loop in seven lacks its last steps, and in one in nine a step comes too late. */
export function planLoopSteps(random: Random, wish: LoopWish): readonly StepPlan[] {
  const count = wish.answersAtOnce ? 3 : wish.rounds + 1;
  const steps = Array.from({ length: count }, (_, at) => planStep(random, { at, wish }));
  const late = random.chance(1 / 9) ? random.integer(1, count - 1) : undefined;
  const played = random.chance(1 / 7) ? random.integer(1, count - 1) : count;
  return steps
    .map((step, at) => (at === late ? { ...step, afterMs: random.integer(...LATE_MS) } : step))
    .slice(0, played);
}

function planStep(random: Random, { at, wish }: { readonly at: number; readonly wish: LoopWish }): StepPlan {
  const drawn = planFiller(random, LASTS_MS);
  const isFirstOfTwo = wish.answersAtOnce && at === 0;
  const filler = isFirstOfTwo ? { ...drawn, events: 3, delayMs: random.pick(AT_ONCE_DELAYS_MS) } : drawn;
  return {
    afterMs: at === 0 ? 0 : random.pick(TOOLS_MS),
    filler,
    fault: random.chance(0.22) ? planFault(random, { at, events: filler.events }) : "",
    caller: planCaller(random),
    firstProxy: pickProxy(random),
  };
}

/** A model may refuse the ad in a later step alone. */
function planFault(random: Random, { at, events }: { readonly at: number; readonly events: number }): string {
  return at > 0 && random.chance(0.15)
    ? planRefusal(random)
    : planModelFault(random, events + EVENTS_OF_CALLS);
}

function planCaller(random: Random): CallerPlan {
  if (random.chance(0.1)) {
    return planHangUp(random);
  }
  return random.chance(0.15) ? { kind: "takes_calls" } : { kind: "reads" };
}
