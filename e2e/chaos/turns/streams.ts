/** What each stream of a run does, drawn from the seed before anything starts. A stream is one turn of a user. */
import { DIALECTS, type DialectName } from "@adrelay/core";
import { makeRandom, type Random } from "@adrelay/testkit";
import { CANARY } from "../log-watch.ts";
import { drawWish, type LoopWish, planLoopSteps, wishedText } from "./loops.ts";
import { planOnlyStep, planRefusal, type StepPlan } from "./steps.ts";

export interface StreamPlan {
  readonly number: number;
  readonly startsAtMs: number;
  /** The stream of the same session that must be over before, if there is one. Both have the same user text. */
  readonly follows: number | undefined;
  readonly session: string;
  readonly dialect: DialectName;
  readonly isStreamed: boolean;
  readonly userText: string;
  /** The tool loop that the user's text asks for; undefined for one answer without tools. */
  readonly loop: LoopWish | undefined;
  /** The first asks; the others answer tool calls. */
  readonly steps: readonly StepPlan[];
  /** What the marks of all its texts begin with. */
  readonly mark: string;
  /** The model's server refuses each prompt that has an ad. */
  readonly isRefused: boolean;
  readonly acknowledges: "proxy" | "backend_before" | "backend_after" | "manual";
}

/** How many streams of each kind of fault and of caller a run has is random. Loops, refusals and backends come in each run. */
export function planStreams(options: {
  readonly seed: number;
  readonly streams: number;
  readonly trafficMs: number;
}): readonly StreamPlan[] {
  const { seed, streams, trafficMs } = options;
  const random = makeRandom(`streams ${seed}`);
  const planned: StreamPlan[] = [];
  for (let number = 0; number < streams; number += 1) {
    const startsAtMs = Math.round((trafficMs * number) / streams);
    planned.push(planStream(random, { seed, number, startsAtMs, planned }));
  }
  return planned;
}

/** Of this many streams, each has its own place for what comes in each run. */
const LOOPS_OF = { every: 4, are: 2 };
const FOLLOWS_AFTER = 4;

interface Place {
  readonly seed: number;
  readonly number: number;
  readonly startsAtMs: number;
  readonly planned: readonly StreamPlan[];
}

function planStream(random: Random, place: Place): StreamPlan {
  const { seed, number, startsAtMs, planned } = place;
  const isRefused = number % 10 === 3;
  const isLoop = number % LOOPS_OF.every < LOOPS_OF.are;
  const mark = `${CANARY}-${seed}-${number}`;
  // The model answers the same ids again, in a session in which the same was asked.
  const first = number % 8 === FOLLOWS_AFTER ? planned[number - FOLLOWS_AFTER] : undefined;
  const loop = isLoop ? (first?.loop ?? drawWish(random)) : undefined;
  const steps =
    loop === undefined ? [planOnlyStep(random, { number, isRefused })] : planLoopSteps(random, loop);
  return {
    number,
    startsAtMs,
    follows: first?.number,
    session: first?.session ?? `session-${number}`,
    dialect: first?.dialect ?? random.pick(DIALECTS),
    isStreamed: mustStream(steps, loop) || random.chance(0.75),
    userText: loop === undefined ? `What do you advise? ${mark}` : wishedText(loop),
    loop,
    steps: isRefused ? steps.map((step) => ({ ...step, fault: planRefusal(random) })) : steps,
    mark,
    isRefused,
    acknowledges:
      !isRefused && number % 7 === 5 ? random.pick(["backend_before", "backend_after", "manual"]) : "proxy",
  };
}

/** An answer that comes as a whole has no calls before its end, and no events. */
function mustStream(steps: readonly StepPlan[], loop: LoopWish | undefined): boolean {
  return loop?.answersAtOnce === true || steps.some(({ caller }) => caller.kind !== "reads");
}

/** One call of a stream, by its place in it. */
export interface CallPlace {
  /** Of the step, from 0 on. */
  readonly step: number;
  /** From 0 on; each further one repeats a call that brought nothing. */
  readonly attempt: number;
}

/** Each call has a text of its own, so that a text tells which call it came from. */
const markOf = ({ mark }: StreamPlan, { step, attempt }: CallPlace) => `${mark}-${step}-${attempt}`;

/** For X-Demo-Fault. */
export function modelFaultsOf(plan: StreamPlan, place: CallPlace): string {
  const { filler, fault } = stepOf(plan, place);
  const { events, sizeChars, delayMs } = filler;
  const text = `events=${events};size=${sizeChars};mark=${markOf(plan, place)}, delay=${delayMs}`;
  return fault === "" ? text : `${text}, ${fault}`;
}

/** The text that the model answers to a call, as the demo model makes it of `events`, `size` and `mark`. */
export function modelTextOf(plan: StreamPlan, place: CallPlace): string {
  const { loop } = plan;
  if (loop !== undefined && place.step < loop.rounds && !loop.saysFirst) {
    return "";
  }
  const { events, sizeChars } = stepOf(plan, place).filler;
  const filler = "lorem ipsum dolor sit amet ".repeat(Math.ceil(sizeChars / 27));
  const mark = markOf(plan, place);
  return Array.from({ length: events }, (_, at) => `${mark}.${at} ${filler}`.slice(0, sizeChars)).join("");
}

export function stepOf({ steps }: StreamPlan, { step }: Pick<CallPlace, "step">): StepPlan {
  const plan = steps[step];
  if (plan === undefined) {
    throw new RangeError(`the stream has no step ${step}`);
  }
  return plan;
}
