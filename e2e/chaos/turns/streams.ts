/** What each stream of a run does, drawn from the seed before anything starts. */
import { DIALECTS, type DialectName } from "@adrelay/core";
import { makeRandom, type Random } from "@adrelay/testkit";
import { CANARY } from "../log-watch.ts";

export interface StreamPlan {
  readonly number: number;
  readonly startsAtMs: number;
  readonly dialect: DialectName;
  readonly isStreamed: boolean;
  /** Unique, so that the ad service's and the model's records can be matched with it. */
  readonly prompt: string;
  /** The text that the model answers. */
  readonly text: string;
  /** For X-Demo-Fault. */
  readonly modelFaults: string;
  /** The model's server refuses each prompt that has an ad. */
  readonly isRefused: boolean;
  readonly caller: CallerPlan;
  readonly acknowledges: "proxy" | "backend_before" | "backend_after" | "manual";
  /** Which proxy the first call goes to. A retry goes to the other one. */
  readonly firstProxy: 0 | 1;
}

export type CallerPlan =
  | { readonly kind: "reads" }
  /** After so many events; with 0, after the headers; with -1, before. */
  | { readonly kind: "hangs_up"; readonly atEvent: number }
  | { readonly kind: "slow"; readonly everyBytes: number; readonly pauseMs: number };

/** How many streams of each kind of fault and of caller a run has is random. Refusals and backends come in each run. */
export function planStreams(options: {
  readonly seed: number;
  readonly streams: number;
  readonly trafficMs: number;
}): readonly StreamPlan[] {
  const { seed, streams, trafficMs } = options;
  const random = makeRandom(`streams ${seed}`);
  return Array.from({ length: streams }, (_, number) => {
    const startsAtMs = Math.round((trafficMs * number) / streams);
    return planStream(random, { seed, number, startsAtMs });
  });
}

const EVENTS_MOST = 90;
const EVENTS_FEW = 8;
const MARK_CHARS = 48;
/** Some are over at once, some outlive the deadline of an acknowledgment. */
const LASTS_MS = [0, 200, 1000, 3000, 5000];
/** Answers of this size fill the buffers of a connection whose reader is slow. */
const MUCH_TEXT = { events: 60, sizeChars: 6000, delayMs: 5 };

function planStream(
  random: Random,
  {
    seed,
    number,
    startsAtMs,
  }: { readonly seed: number; readonly number: number; readonly startsAtMs: number },
): StreamPlan {
  const isRefused = number % 10 === 3;
  const caller: CallerPlan = isRefused ? { kind: "reads" } : planCaller(random, number);
  const { events, sizeChars, delayMs } = caller.kind === "slow" ? MUCH_TEXT : planPace(random);
  const mark = `${CANARY}-${seed}-${number}`;
  const filler = `events=${events};size=${sizeChars};mark=${mark}, delay=${delayMs}`;
  const fault = isRefused
    ? `refuse-enhanced=${random.pick([400, 413, 422])}`
    : planModelFault(random, events);
  return {
    number,
    startsAtMs,
    dialect: random.pick(DIALECTS),
    isStreamed: caller.kind !== "reads" || random.chance(0.75),
    prompt: `What do you advise? ${mark}`,
    text: textOf(mark, events, sizeChars),
    modelFaults: fault === "" ? filler : `${filler}, ${fault}`,
    isRefused,
    caller,
    acknowledges:
      !isRefused && number % 8 === 5 ? random.pick(["backend_before", "backend_after", "manual"]) : "proxy",
    firstProxy: random.chance(0.5) ? 0 : 1,
  };
}

function planPace(random: Random) {
  const events = random.chance(0.3) ? random.integer(1, EVENTS_FEW) : random.integer(EVENTS_FEW, EVENTS_MOST);
  const delayMs = Math.round(random.pick(LASTS_MS) / events);
  return { events, sizeChars: random.integer(MARK_CHARS, 6 * MARK_CHARS), delayMs };
}

/** A third of the callers hang up, at each of the first events and at later ones. */
function planCaller(random: Random, number: number): CallerPlan {
  if (number % 3 === 1) {
    const atEvent = random.chance(0.6)
      ? random.integer(-1, EVENTS_FEW)
      : random.integer(EVENTS_FEW, EVENTS_MOST);
    return { kind: "hangs_up", atEvent };
  }
  return random.chance(0.15)
    ? { kind: "slow", everyBytes: random.integer(20_000, 100_000), pauseMs: random.integer(50, 600) }
    : { kind: "reads" };
}

function planModelFault(random: Random, events: number): string {
  const after = random.integer(0, events + 3);
  return random.pick([
    ...Array.from({ length: 8 }, () => ""),
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

/** As the demo model makes it of `events`, `size` and `mark`. */
function textOf(mark: string, events: number, sizeChars: number): string {
  const filler = "lorem ipsum dolor sit amet ".repeat(Math.ceil(sizeChars / 27));
  return Array.from({ length: events }, (_, at) => `${mark}.${at} ${filler}`.slice(0, sizeChars)).join("");
}
