/** What the outcome of an attempt means for its acknowledgment: what is booked, and the notice for a waiting gateway. */
import type { OutcomeNotice } from "@adrelay/contract";
import { type AgeReason, type DeliveryOutcome, planRetry } from "@adrelay/core";
import {
  type BegunAttempt,
  type ChannelNotice,
  type JobHead,
  PARKED_MAX_MS,
  type Settlement,
} from "@adrelay/store";

export interface RetryRules {
  readonly scheduleMs: readonly number[];
  readonly ageMaxMs: number;
  /** A failed probe isn't the next one: it waits at least this long. */
  readonly probeRestMs: number;
  /** Uniform in [0, 1). */
  random(): number;
}

/** An attempt that was made, and its outcome. */
export interface ClassifiedAttempt {
  readonly due: BegunAttempt;
  readonly outcome: DeliveryOutcome;
  /** The provider's own code for what went wrong, if it sent one. */
  readonly providerError: string | undefined;
  readonly durationMs: number;
  /** Of the caller's body. */
  readonly bodyBytes: number;
  /** It was made to learn about the provider, so its failure doesn't count for the acknowledgment. */
  readonly isProbe: boolean;
  /** The id of the provider account, if its circuit breaker is open by now. */
  readonly parkAt: string | undefined;
}

export function decideSettlement(rules: RetryRules, attempt: ClassifiedAttempt): Settlement {
  const { due, outcome, durationMs } = attempt;
  const { job, entry } = due;
  const shared = {
    id: job.adResponseId,
    code: outcome.code,
    durationMs,
    attemptsBefore: entry.attempts,
  };
  switch (outcome.kind) {
    case "delivered": {
      const { verdict, providerAckId, code } = outcome;
      const notify = notificationFor(job, {
        event: "deliver",
        code,
        delayMs: 0,
        ...(verdict === undefined ? {} : { verdict }),
        ...(providerAckId === undefined ? {} : { providerAckId }),
      });
      return { ...shared, event: "deliver", verdict: verdict ?? "unknown", providerAckId, notify };
    }
    case "refused":
      return { ...shared, event: "refuse", notify: notify(job, "refuse", outcome.code) };
    case "dead":
      return { ...shared, ...deathOf(attempt, outcome), reason: outcome.reason };
    case "retry":
    case "ambiguous":
      return { ...shared, ...decideRetry(rules, attempt, outcome) };
    default:
      return outcome satisfies never;
  }
}

type RepeatedOutcome = Extract<DeliveryOutcome, { kind: "retry" | "ambiguous" }>;
type Decided =
  | Omit<
      Extract<Settlement, { event: "retry" | "ambiguous" }>,
      "id" | "code" | "durationMs" | "attemptsBefore"
    >
  | Omit<Extract<Settlement, { event: "die" }>, "id" | "code" | "durationMs" | "attemptsBefore">;

/**
 * After a failed attempt the acknowledgment waits for its retry schedule, even if its provider is down. The
 * acknowledgment itself may be the cause, and then it must neither come again immediately nor go before others. A failed
 * probe doesn't count for it, and is another acknowledgment's turn next. It is parked if an early retry doesn't help, or
 * if it would die of an outage.
 */
function decideRetry(rules: RetryRules, attempt: ClassifiedAttempt, outcome: RepeatedOutcome): Decided {
  const { due, isProbe, parkAt, providerError } = attempt;
  const { job } = due;
  // Nobody knows how long a provider stays down.
  const notifyParked = notify(job, "retry", outcome.code, PARKED_MAX_MS);
  const shared = { event: outcome.kind, providerError };
  if (isProbe) {
    const delayMs = Math.max(rules.probeRestMs, askedFor(outcome) ?? 0);
    return { ...shared, next: { kind: "after_delay", delayMs }, isCounted: false, notify: notifyParked };
  }
  const plan = planOf(rules, attempt, outcome);
  const isBlameless = (outcome.kind === "retry" && outcome.pace === "slow") || plan.kind === "too_old";
  if (parkAt !== undefined && isBlameless) {
    return { ...shared, next: { kind: "parked", account: parkAt }, isCounted: true, notify: notifyParked };
  }
  if (plan.kind === "too_old") {
    return { ...deathOf(attempt, outcome), reason: diesAs(outcome) };
  }
  const { delayMs } = plan;
  return {
    ...shared,
    next: { kind: "after_delay", delayMs },
    isCounted: true,
    notify: notify(job, "retry", outcome.code, delayMs),
  };
}

function planOf(
  { scheduleMs, ageMaxMs, random }: RetryRules,
  { due: { entry, nowMs }, durationMs }: ClassifiedAttempt,
  outcome: RepeatedOutcome,
) {
  return planRetry({
    scheduleMs,
    failedAttempts: entry.failedAttempts + 1,
    ageMs: nowMs + durationMs - (entry.queuedAtMs ?? nowMs),
    ageMaxMs,
    pace: paceOf(outcome, entry.failedAttempts),
    retryAfterMs: askedFor(outcome),
    random: random(),
  });
}

/**
 * The first attempt with a refused key comes again soon: by then the circuit breaker is open, or another worker has the right
 * key.
 */
function paceOf(outcome: RepeatedOutcome, failedBefore: number): "scheduled" | "slow" {
  const isFirstRefusal = outcome.kind === "retry" && outcome.blame === "key" && failedBefore === 0;
  return outcome.kind === "ambiguous" || isFirstRefusal ? "scheduled" : outcome.pace;
}

/** How long the provider asked us to wait, in milliseconds. */
function askedFor(outcome: RepeatedOutcome): number | undefined {
  return outcome.kind === "retry" ? outcome.retryAfterMs : undefined;
}

function diesAs(outcome: RepeatedOutcome): AgeReason {
  return outcome.kind === "retry" ? outcome.diesAs : "exhausted";
}

/** What operators see of a dead letter besides its reason. */
function deathOf({ due: { job }, bodyBytes, providerError }: ClassifiedAttempt, { code }: DeliveryOutcome) {
  return {
    event: "die",
    sizeBytes: bodyBytes,
    providerError,
    notify: notify(job, "die", code),
  } as const;
}

function notify(
  job: JobHead,
  event: OutcomeNotice["event"],
  code: string,
  delayMs = 0,
): ChannelNotice | undefined {
  return notificationFor(job, { event, code, delayMs });
}

/** The message for the gateway that waits; undefined if none does. */
export function notificationFor(
  { adResponseId, publisher, replyTo }: JobHead,
  outcome: Omit<OutcomeNotice, "adResponseId" | "publisher">,
): ChannelNotice | undefined {
  if (replyTo === undefined) {
    return undefined;
  }
  const notice: OutcomeNotice = { adResponseId, publisher, ...outcome };
  return { channel: replyTo, message: JSON.stringify(notice) };
}
