/** How much of what a caller received may be missing from the acknowledgment: nothing, unless its proxy died. */
import { acknowledgedOf } from "@adrelay/store";
import type { TurnEvidence, TurnsEvidence } from "./evidence.ts";
import { LEASE_AT_RISK_MS, type ProxyId, type TurnFaultSpan } from "./faults.ts";
import { readPieces } from "./pieces.ts";
import type { CallRecord } from "./stream-call.ts";

/** Text goes to the journal in batches of so long, and the one that is on its way may be lost, too. */
const BATCH_MS = 250;
const BATCHES_LOST_MAX = 2;
/** A busy machine: a batch is sent and confirmed so much later than its time. */
const SLACK_MS = 500;
/** After Redis is back, the proxy reconnects, and sends what is unconfirmed. */
const RECONNECT_MS = 3000;

export interface Loss {
  /** What must be acknowledged at least. */
  readonly charsLeast: number;
  /** Until when the proxy could journal the text; undefined if it didn't die. */
  readonly journaledUntilMs: number | undefined;
  /** Whether it could journal until it died: Redis was there. */
  readonly wasRedisThere: boolean;
}

/** What the acknowledgment of a turn must contain of the text that one of its callers received. */
export function lossOf(
  { entry }: Pick<TurnEvidence, "entry">,
  call: CallRecord,
  spans: readonly TurnFaultSpan[],
): Loss {
  const acceptedAtMs = (entry && acknowledgedOf(entry)?.acceptedAtMs) ?? Number.POSITIVE_INFINITY;
  const deaths = spans.filter(
    (span) => isDeathOf(span, call, spans) && span.fromMs >= call.startedAtMs && span.fromMs <= acceptedAtMs,
  );
  if (deaths.length === 0) {
    return { charsLeast: call.text.length, journaledUntilMs: undefined, wasRedisThere: true };
  }
  const diedAtMs = Math.min(...deaths.map(({ fromMs }) => fromMs));
  const journaledUntilMs = journaledUntil(diedAtMs, call.proxy, spans);
  const before = call.arrivals.filter(
    ({ atMs }) => atMs <= journaledUntilMs - BATCHES_LOST_MAX * BATCH_MS - SLACK_MS,
  );
  const charsLeast = before.at(-1)?.chars ?? 0;
  return { charsLeast, journaledUntilMs, wasRedisThere: journaledUntilMs === diedAtMs };
}

/**
 * A proxy that stands still for longer than its lease is as good as dead: a worker settles its turns. One that is told to stop brings
 * all ends through, but it doesn't wait for Redis for ever.
 */
function isDeathOf(span: TurnFaultSpan, { proxy }: CallRecord, spans: readonly TurnFaultSpan[]): boolean {
  const { fault, fromMs, untilMs } = span;
  if (!("app" in fault) || fault.app !== proxy) {
    return false;
  }
  switch (fault.kind) {
    case "kill":
      return true;
    case "freeze":
      return untilMs - fromMs >= LEASE_AT_RISK_MS;
    case "restart":
      return wasStoreAway(proxy, { fromMs, untilMs }, spans);
    case "link_cut":
      return false;
    default:
      return fault satisfies never;
  }
}

/** When a proxy couldn't reach Redis, or stood still. A kill isn't among these times. */
function pausesOf(proxy: ProxyId, spans: readonly TurnFaultSpan[]): readonly TurnFaultSpan[] {
  return spans.filter(({ fault }) => {
    switch (fault.kind) {
      case "redis_kill":
      case "redis_freeze":
        return true;
      case "link_cut":
        return fault.app === proxy && fault.end === "redis";
      case "freeze":
        return fault.app === proxy;
      case "kill":
      case "restart":
        return false;
      default:
        return fault satisfies never;
    }
  });
}

/** Whether a proxy may have been without Redis at some moment of a time. */
export function wasStoreAway(
  proxy: ProxyId,
  { fromMs, untilMs }: Pick<TurnFaultSpan, "fromMs" | "untilMs">,
  spans: readonly TurnFaultSpan[],
): boolean {
  return pausesOf(proxy, spans).some(
    (pause) => pause.fromMs <= untilMs && pause.untilMs + RECONNECT_MS >= fromMs,
  );
}

/** The moment until which the proxy could journal: it died then, or Redis was away, or it stood still. */
function journaledUntil(diedAtMs: number, proxy: ProxyId, spans: readonly TurnFaultSpan[]): number {
  let untilMs = diedAtMs;
  // The latest first, because each may begin in the time that the next one needed to recover.
  for (const span of pausesOf(proxy, spans).toSorted((one, other) => other.fromMs - one.fromMs)) {
    if (span.fromMs < untilMs && span.untilMs + RECONNECT_MS > untilMs) {
      untilMs = span.fromMs;
    }
  }
  return untilMs;
}

/** Of each call whose proxy died while Redis was there: how old the oldest text was that was lost, in ms; 0 if none was. */
export function lossesOf({ turns, spans }: TurnsEvidence): readonly number[] {
  const ofProxy = turns.filter(
    ({ plan, posts }) => plan.acknowledges === "proxy" && !plan.isRefused && posts > 0,
  );
  return ofProxy.flatMap((turn) => {
    const pieces = readPieces(turn, turn.postedTexts[0] ?? "");
    return turn.calls.flatMap((call) => {
      const { journaledUntilMs, wasRedisThere } = lossOf(turn, call, spans);
      if (journaledUntilMs === undefined || !wasRedisThere || pieces.kind === "faulty") {
        return [];
      }
      const kept = pieces.texts.get(call)?.length ?? 0;
      const lost = call.arrivals.find(({ chars }) => chars > kept);
      return [lost === undefined ? 0 : Math.max(0, journaledUntilMs - lost.atMs)];
    });
  });
}
