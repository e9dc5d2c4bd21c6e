/** What an attempt means for its acknowledgment: what is booked, what a waiting gateway is told, what the queue does. */
import type { DeliveryJob, OutcomeNotice } from "@adrelay/contract";
import { type DeliveryOutcome, planRetry } from "@adrelay/core";
import type { Settlement } from "@adrelay/ledger";
import type { Span } from "@adrelay/service-kit";
import type { DueAttempt } from "./begin-attempt.ts";

export interface RetryRules {
  readonly scheduleMs: readonly number[];
  readonly ageMaxMs: number;
  /** Uniform in [0, 1). */
  random(): number;
}

/** An attempt that has been made. */
export interface MadeAttempt {
  readonly job: DeliveryJob;
  readonly begun: DueAttempt;
  readonly span: Span;
  readonly outcome: DeliveryOutcome;
  /** The provider's own code for what went wrong, if it told one. */
  readonly providerError: string | undefined;
  readonly durationMs: number;
  /** It was made for the provider's sake: its failure costs the acknowledgment nothing. */
  readonly isProbe: boolean;
  /** Its provider's circuit is open by now. */
  readonly isProviderAway: boolean;
}

/** Whether what comes next is up to the provider, and not to a schedule or an age limit. */
export function waitsForProvider({ outcome, isProviderAway }: MadeAttempt): boolean {
  return outcome.kind === "retry" && isProviderAway;
}

/** How long an acknowledgment waits for its provider before it asks by itself whether it may go. */
export const PARKED_MAX_MS = 600_000;

export function decideSettlement(rules: RetryRules, made: MadeAttempt): Settlement {
  const { job, begun, outcome, durationMs } = made;
  const decided = withRetryPlan(rules, made);
  const settled = {
    id: job.adResponseId,
    code: outcome.code,
    providerAckId: undefined,
    durationMs,
    delayMs: 0,
    isCounted: true,
    attemptsBefore: begun.entry.attempts,
    ...decided,
    ...(decided.event === "die" ? deathOf(made) : {}),
  };
  // Nobody can tell how long a provider stays away.
  const told = waitsForProvider(made) ? { ...settled, delayMs: PARKED_MAX_MS } : settled;
  return { ...settled, notify: noticeFor(job, told) };
}

/** What operators are shown of a dead letter besides its reason. */
function deathOf({ job, providerError }: MadeAttempt): Pick<Settlement, "death"> {
  return { death: { sizeBytes: Buffer.byteLength(job.body), providerError } };
}

type Decided = Pick<Settlement, "event" | "label"> &
  Partial<Pick<Settlement, "providerAckId" | "delayMs" | "isCounted">>;

function withRetryPlan(rules: RetryRules, made: MadeAttempt): Decided {
  const { outcome } = made;
  switch (outcome.kind) {
    case "delivered":
      return { event: "deliver", label: outcome.verdict ?? "unknown", providerAckId: outcome.providerAckId };
    case "refused":
      return { event: "refuse", label: "" };
    case "dead":
      return { event: "die", label: outcome.reason };
    case "retry":
      return waitsForProvider(made)
        ? { event: "retry", label: "", isCounted: !made.isProbe }
        : planOf(rules, made, outcome);
    default:
      return outcome satisfies never;
  }
}

function planOf(
  { scheduleMs, ageMaxMs, random }: RetryRules,
  { begun: { entry, nowMs }, durationMs }: MadeAttempt,
  { pace, retryAfterMs }: Extract<DeliveryOutcome, { kind: "retry" }>,
): Decided {
  const plan = planRetry({
    scheduleMs,
    failedAttempts: entry.failedAttempts + 1,
    ageMs: nowMs + durationMs - (entry.queuedAtMs ?? nowMs),
    ageMaxMs,
    pace,
    retryAfterMs,
    random: random(),
  });
  return plan.kind === "retry"
    ? { event: "retry", label: "", delayMs: plan.delayMs }
    : { event: "die", label: plan.reason };
}

/** What the gateway that waits is told, in the same step that books it. */
export function noticeFor(
  job: DeliveryJob,
  settled: Pick<Settlement, "event" | "label" | "code" | "providerAckId" | "delayMs">,
): Settlement["notify"] {
  if (job.replyTo === undefined) {
    return undefined;
  }
  const { event, label, code, providerAckId, delayMs } = settled;
  const notice: OutcomeNotice = {
    adResponseId: job.adResponseId,
    publisher: job.publisher,
    event,
    code,
    delayMs,
    ...(label === "ok" || label === "no_ad_used" ? { verdict: label } : {}),
    ...(providerAckId === undefined ? {} : { providerAckId }),
  };
  return { channel: job.replyTo, message: JSON.stringify(notice) };
}
