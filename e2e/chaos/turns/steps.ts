/** What happens in one step of a stream: which text the model writes, what goes wrong, and how the caller takes it. */
import type { Random } from "@adrelay/testkit";

export interface StepPlan {
  /** How long the caller waits before it sends the step: its tools take so long. */
  readonly afterMs: number;
  readonly filler: FillerPlan;
  /** For X-Demo-Fault; empty if nothing goes wrong. */
  readonly fault: string;
  readonly caller: CallerPlan;
  /** Which proxy the first call goes to. A retry goes to the other one. */
  readonly firstProxy: 0 | 1;
}

interface FillerPlan {
  readonly events: number;
  readonly sizeChars: number;
  readonly delayMs: number;
}

export type CallerPlan =
  | { readonly kind: "reads" }
  /** After so many events; with 0, after the headers; with -1, before. */
  | { readonly kind: "hangs_up"; readonly atEvent: number }
  /** Hangs up as soon as it has read the calls of tools. */
  | { readonly kind: "takes_calls" }
  | { readonly kind: "slow"; readonly everyBytes: number; readonly pauseMs: number };

const EVENTS_MOST = 90;
const EVENTS_FEW = 8;
/** An event has room for the mark of its call and its number. */
const MARK_CHARS = 48;
/** Some are over at once, some outlive the deadline of an acknowledgment. */
const LASTS_MS = [0, 200, 1000, 3000, 5000];
/** Answers of this size fill the buffers of a connection whose reader is slow. */
const MUCH_TEXT = { events: 60, sizeChars: 6000, delayMs: 5 };

/** The step of a turn without tools. */
export function planOnlyStep(
  random: Random,
  { number, isRefused }: { readonly number: number; readonly isRefused: boolean },
): StepPlan {
  const caller: CallerPlan = isRefused ? { kind: "reads" } : planCaller(random, number);
  const filler = caller.kind === "slow" ? MUCH_TEXT : planFiller(random, LASTS_MS);
  const fault = random.chance(1 / 3) ? "" : planModelFault(random, filler.events);
  return { afterMs: 0, filler, fault, caller, firstProxy: pickProxy(random) };
}

export const pickProxy = (random: Random): 0 | 1 => (random.chance(0.5) ? 0 : 1);

export const planRefusal = (random: Random): string => `refuse-enhanced=${random.pick([400, 413, 422])}`;

/** @param lastsMs how long the text may take */
export function planFiller(random: Random, lastsMs: readonly number[]): FillerPlan {
  const events = random.chance(0.3) ? random.integer(1, EVENTS_FEW) : random.integer(EVENTS_FEW, EVENTS_MOST);
  const delayMs = Math.round(random.pick(lastsMs) / events);
  return { events, sizeChars: random.integer(MARK_CHARS, 6 * MARK_CHARS), delayMs };
}

/** At each of the first events, and at later ones. */
export function planHangUp(random: Random): CallerPlan {
  const atEvent = random.chance(0.6)
    ? random.integer(-1, EVENTS_FEW)
    : random.integer(EVENTS_FEW, EVENTS_MOST);
  return { kind: "hangs_up", atEvent };
}

/** A third of the callers hang up. */
function planCaller(random: Random, number: number): CallerPlan {
  if (number % 3 === 1) {
    return planHangUp(random);
  }
  return random.chance(0.15)
    ? { kind: "slow", everyBytes: random.integer(20_000, 100_000), pauseMs: random.integer(50, 600) }
    : { kind: "reads" };
}

/** @param events of the whole answer, as far as they are known: an early end may come behind the text */
export function planModelFault(random: Random, events: number): string {
  const after = random.integer(0, events + 3);
  return random.pick([
    `cut-after=${after}`,
    `reset-after=${after}`,
    `stall-after=${after}`,
    `end-after=${after}`,
    `error-event-after=${after}`,
    "status=429;times=1",
    "status=503;times=1",
    "status=500",
    "status=404",
    "reset-before-headers;times=1",
    `slow-headers=${random.integer(100, 1500)}`,
    "no-done",
    "usage-after-end",
    "gzip",
    "split=every-byte",
    `split=${random.integer(2, 200)}`,
  ]);
}
