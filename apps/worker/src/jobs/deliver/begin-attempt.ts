import type { PublisherId } from "@adrelay/contract";
import type { BeginResult, Standing, StandingLook } from "@adrelay/ledger";
import type { HandlerOutcome } from "@adrelay/queue";

/** An entry whose attempt is due, at the ledger's present time. */
export interface DueAttempt {
  readonly kind: "due";
  readonly entry: Standing;
  readonly nowMs: number;
}

/** No attempt is made, and why. */
export interface SkippedAttempt {
  readonly kind: "skip";
  readonly why: string;
  readonly outcome: HandlerOutcome;
}

/** A job runs as soon as it is fetched: if this one didn't, its process was held up, and others may have been at it. */
const LOOK_AGE_MAX_MS = 1000;

/** What was seen of a job when it was fetched; undefined if the ledger must be asked. `nowMs`: monotonic. */
export function standingSeen(
  look: StandingLook | undefined,
  publisher: PublisherId,
  nowMs: number,
): BeginResult | undefined {
  const isOfUse = look?.publisher === publisher && nowMs - look.askedAtMs <= LOOK_AGE_MAX_MS;
  return isOfUse ? look.begun : undefined;
}

/** Waits shorter than this are not worth another turn through the queue. */
const EARLY_TOLERANCE_MS = 50;

/** Whether the attempt is to be made, by what the ledger says. */
export function beginAttempt(accepted: BeginResult): DueAttempt | SkippedAttempt {
  switch (accepted.kind) {
    case "accepted":
    case "accepted_late":
    case "accepted_unknown":
      return { kind: "due", entry: accepted.entry, nowMs: accepted.nowMs };
    case "repeat":
      return beginRepeat(accepted.entry, accepted.nowMs);
    // Nobody was told 2xx for this job: its request ended with an error.
    case "conflict":
    case "not_acknowledgeable":
    case "other_publisher":
    case "payload_missing":
      return { kind: "skip", why: accepted.kind, outcome: { kind: "finished" } };
    default:
      return accepted satisfies never;
  }
}

function beginRepeat(entry: Standing, nowMs: number): DueAttempt | SkippedAttempt {
  switch (entry.state) {
    case "queued": {
      const earlyMs = (entry.nextAttemptAtMs ?? 0) - nowMs;
      return earlyMs > EARLY_TOLERANCE_MS
        ? { kind: "skip", why: "early", outcome: { kind: "again", delayMs: earlyMs } }
        : { kind: "due", entry, nowMs };
    }
    case "dead":
      return {
        kind: "skip",
        why: entry.state,
        outcome: { kind: "dead", reason: entry.deadReason ?? "dead" },
      };
    case "awaiting":
    case "missed":
    case "delivered":
    case "refused":
    case "discarded":
    case "expired":
    case "unacknowledgeable":
    case "abandoned":
      return { kind: "skip", why: entry.state, outcome: { kind: "finished" } };
    default:
      return entry.state satisfies never;
  }
}
