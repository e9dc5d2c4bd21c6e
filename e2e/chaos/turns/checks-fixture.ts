/** Evidence of one turn that went well, for the tests of the checks. A test changes what must be found. */
import { hash } from "node:crypto";
import type { TurnEvidence, TurnsEvidence } from "./evidence.ts";
import type { TurnFault, TurnFaultSpan } from "./faults.ts";
import type { CallRecord } from "./stream-call.ts";
import { planStreams, type StreamPlan } from "./streams.ts";

export const BEGUN_AT_MS = 1_000_000;
const PROMPT = "an ad and the question";
const ID = "id";
export const TEXT = Array.from({ length: 20 }, (_, at) => `word${at}`)
  .join(" ")
  .slice(0, 100);

const plans = planStreams({ seed: 1, streams: 8, trafficMs: 1000 });
const SIMPLE = { isRefused: false, acknowledges: "proxy" } as const;

/** The plan of a stream with a tool loop, or without. */
export function planOf(hasLoop: boolean): StreamPlan {
  const [plan] = plans.filter(({ loop }) => (loop !== undefined) === hasLoop);
  if (plan === undefined) {
    throw new RangeError("no stream is of this kind");
  }
  return { ...plan, ...SIMPLE };
}

/** A call through proxy-1 that received 50 characters in 5 s. */
export function makeCall(change: Partial<CallRecord> = {}): CallRecord {
  return {
    plan: planOf(false),
    step: 0,
    attempt: 0,
    proxy: "proxy-1",
    answers: undefined,
    modelText: TEXT,
    startedAtMs: BEGUN_AT_MS,
    headersAtMs: BEGUN_AT_MS + 100,
    promptHash: hash("sha256", PROMPT),
    status: 200,
    ad: "injected",
    adResponseId: ID,
    text: TEXT.slice(0, 50),
    arrivals: [1, 2, 3, 4, 5].map((at) => ({ atMs: BEGUN_AT_MS + at * 1000, chars: at * 10 })),
    callIds: [],
    end: "broken",
    endedAtMs: BEGUN_AT_MS + 5000,
    ...change,
  };
}

export interface EvidenceChange {
  readonly plan?: StreamPlan;
  readonly calls?: readonly CallRecord[];
  readonly turn?: Partial<TurnEvidence>;
  readonly spans?: readonly TurnFaultSpan[];
}

/** All that was received is acknowledged. */
export function makeEvidence({
  plan = planOf(false),
  calls = [makeCall({ plan })],
  turn = {},
  spans = [],
}: EvidenceChange): TurnsEvidence {
  const acknowledged = calls.map(({ text }) => text).filter((text) => text !== "");
  const whole: TurnEvidence = {
    id: ID,
    plan,
    calls: calls.filter(({ adResponseId }) => adResponseId === ID),
    untold: calls.filter(({ headersAtMs }) => headersAtMs === undefined),
    sent: [],
    postedTexts: [acknowledged.join("\n\n")],
    posts: 1,
    entry: entryIn("delivered"),
    ...turn,
  };
  const sold = new Map([[ID, { session: plan.session, atMs: BEGUN_AT_MS, enhancedPrompt: PROMPT }]]);
  const streams = [{ plan, calls, acknowledgments: [] }];
  return { turns: [whole], streams, sold, spans, redisAway: [] };
}

/** An entry that was accepted 30 s after the call had begun. */
export function entryIn(state: string, isLate = false): TurnEvidence["entry"] {
  const entry: unknown = {
    state,
    acceptedAtMs: BEGUN_AT_MS + 30_000,
    isLate,
    endedAtMs: BEGUN_AT_MS + 30_000,
  };
  // The checks read nothing else of it.
  return entry as TurnEvidence["entry"];
}

export const spanAt = (fault: TurnFault, fromMs: number, lastsMs: number): TurnFaultSpan => ({
  fault,
  fromMs: BEGUN_AT_MS + fromMs,
  untilMs: BEGUN_AT_MS + fromMs + lastsMs,
});
