/** The loads of the part `proxy`, what its rounds measure, and the requests that are sent. */
import { API_KEY_HEADER } from "@adrelay/contract";
import { TEST_API_KEY } from "@adrelay/testkit";
import { type Bench, WARMUP_MS } from "../rounds.ts";
import type { Served, Surroundings } from "../sides.ts";
import { modelNameOf, type StreamForm, type StreamPlan, type StreamRound } from "../streams/stream-load.ts";

/** The sides of the comparison: ours twice, without and with an ad. */
export type Side = "bare" | "plain" | "ad";
export type SideRounds = Readonly<Record<Side, readonly StreamRound[]>>;
/** Where time and CPU are measured, also the naive proxy that puts ads in. */
export type TimedSide = Side | "naive";
type TimedRounds = Readonly<Record<TimedSide, readonly StreamRound[]>>;

export const EVENTS = 200;
/** The loads in which time and CPU are measured. */
export const LOADS = {
  /** Hardly ever two streams at once. */
  one: { form: { events: EVENTS, pauseMs: 0 }, perSecond: 10 },
  /** A stream lasts 1.2 seconds, and as busy machines have it a little longer. */
  many: { form: { events: EVENTS, pauseMs: 6 }, perSecond: 50 },
  /** One event: what a stream costs beside its events. */
  short: { form: { events: 1, pauseMs: 0 }, perSecond: 100 },
} as const satisfies Record<string, { form: StreamForm; perSecond: number }>;
export type LoadName = keyof typeof LOADS;

export const LARGE_REQUESTS = 50;

/** The time of the ad service alone is measured in each round, too. */
export interface StreamRounds {
  readonly loads: Readonly<Record<LoadName, TimedRounds>>;
  readonly adServiceP50Ms: readonly number[];
}

export interface MemoryRounds {
  readonly open: SideRounds;
  readonly large: Omit<SideRounds, "ad">;
}

export interface Place extends Surroundings {
  readonly modelUrl: string;
}

const CONTEXT = {
  "x-adrelay-session-id": "session-of-the-benchmark",
  "x-adrelay-user-agent": "benchmark",
  "x-adrelay-user-ip": "203.0.113.7",
};

export function streamPlan(
  { origin }: Served,
  { form, side, bench }: { readonly form: StreamForm; readonly side: TimedSide; readonly bench: Bench },
): Omit<StreamPlan, "kind" | "pace"> {
  const isOurs = side === "plain" || side === "ad";
  const ours = side === "bare" ? {} : { [API_KEY_HEADER]: TEST_API_KEY, ...CONTEXT };
  const off = side === "plain" ? { "x-adrelay-ad": "off" } : {};
  return {
    origin,
    headers: { "content-type": "application/json", authorization: "Bearer key", ...ours, ...off },
    body: { kind: "fixed", text: bodyFor(form) },
    ...(isOurs ? { ad: side === "ad" ? "injected" : "skipped" } : {}),
    warmupMs: WARMUP_MS,
    durationMs: bench.roundMs,
  };
}

/** A question with a little history. */
function bodyFor(form: StreamForm): string {
  const messages = [
    { role: "system", content: "You help people who run. ".repeat(20) },
    { role: "user", content: "How often should I run?" },
    { role: "assistant", content: "Three times a week is a good start. ".repeat(10) },
    { role: "user", content: "Which shoes are good for a first marathon?" },
  ];
  return JSON.stringify({ model: modelNameOf(form), stream: true, messages });
}
