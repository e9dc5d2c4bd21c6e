/** How much of what a caller received may be missing from the acknowledgment: nothing, unless its proxy died. */
import { acknowledgedOf } from "@adrelay/store";
import type { TurnEvidence } from "./evidence.ts";
import { LEASE_AT_RISK_MS, type TurnFaultSpan } from "./faults.ts";
import type { CallRecord } from "./stream-call.ts";

/** Text goes to the journal in batches of so long, and the one that is on its way may be lost, too. */
const BATCH_MS = 250;
const BATCHES_LOST_MAX = 2;
/** A busy machine: a batch is sent and confirmed so much later than its time. */
export const SLACK_MS = 1500;
/** After Redis is back, the proxy reconnects, and sends what is unconfirmed. */
const RECONNECT_MS = 3000;

export interface Loss {
  /** What must be acknowledged at least. */
  readonly charsLeast: number;
  /** When the proxy died; undefined if it didn't. */
  readonly diedAtMs: number | undefined;
}

/** What the acknowledgment of a turn must contain of the text that one of its callers received. */
export function lossOf(
  { entry }: Pick<TurnEvidence, "entry">,
  call: CallRecord,
  spans: readonly TurnFaultSpan[],
): Loss {
  const acceptedAtMs = (entry && acknowledgedOf(entry)?.acceptedAtMs) ?? Number.POSITIVE_INFINITY;
  const deaths = spans.filter(
    (span) => isDeathOf(span, call) && span.fromMs >= call.startedAtMs && span.fromMs <= acceptedAtMs,
  );
  if (deaths.length === 0) {
    return { charsLeast: call.text.length, diedAtMs: undefined };
  }
  const diedAtMs = Math.min(...deaths.map(({ fromMs }) => fromMs));
  const journaledAtMs = journaledUntil(diedAtMs, call, spans);
  const before = call.arrivals.filter(
    ({ atMs }) => atMs <= journaledAtMs - BATCHES_LOST_MAX * BATCH_MS - SLACK_MS,
  );
  return { charsLeast: before.at(-1)?.chars ?? 0, diedAtMs };
}

/** A proxy that stands still for longer than its lease is as good as dead: a worker settles its turns. */
function isDeathOf({ fault, fromMs, untilMs }: TurnFaultSpan, { proxy }: CallRecord): boolean {
  const isOfProxy = (fault.kind === "kill" || fault.kind === "freeze") && fault.app === proxy;
  return isOfProxy && (fault.kind === "kill" || untilMs - fromMs >= LEASE_AT_RISK_MS);
}

/** The moment until which the proxy could journal: it died then, or Redis was away, or it stood still. */
function journaledUntil(diedAtMs: number, { proxy }: CallRecord, spans: readonly TurnFaultSpan[]): number {
  const pauses = spans.filter(({ fault }) => {
    switch (fault.kind) {
      case "redis_kill":
      case "redis_freeze":
        return true;
      case "link_cut":
        return fault.app === proxy && fault.end === "redis";
      case "freeze":
        return fault.app === proxy;
      case "kill":
        return false;
      default:
        return fault satisfies never;
    }
  });
  let untilMs = diedAtMs;
  // The latest first, because each may begin in the time that the next one needed to recover.
  for (const span of pauses.sort((one, other) => other.fromMs - one.fromMs)) {
    if (span.fromMs < untilMs && span.untilMs + RECONNECT_MS > untilMs) {
      untilMs = span.fromMs;
    }
  }
  return untilMs;
}
