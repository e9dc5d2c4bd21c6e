/** What an attempt means for its acknowledgment: what is booked, what a waiting gateway is told, what the queue does. */
import type { DeliveryJob, OutcomeNotice } from "@adrelay/contract";
import { type DeliveryOutcome, planRetry } from "@adrelay/core";
import type { Settlement } from "@adrelay/ledger";
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
  readonly outcome: DeliveryOutcome;
  /** The provider's own code for what went wrong, if it told one. */
  readonly providerError: string | undefined;
  readonly durationMs: number;
  /** It was made for the provider's sake: its failure costs the acknowledgment nothing. */
  readonly isProbe: boolean;
  /** Its provider's circuit is open by now. */
  readonly isProviderAway: boolean;
}

/** How long an acknowledgment waits for its provider before it asks by itself whether it may go. */
export const PARKED_MAX_MS = 600_000;

export interface Decision {
  readonly settlement: Settlement;
  /** What comes next is up to the provider, and not to a schedule or an age limit. */
  readonly waitsForProvider: boolean;
}

export function decideSettlement(rules: RetryRules, made: MadeAttempt): Decision {
  const { job, begun, outcome, durationMs } = made;
  const { waitsForProvider = false, ...decided } = withRetryPlan(rules, made);
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
  const told = waitsForProvider ? { ...settled, delayMs: PARKED_MAX_MS } : settled;
  return { settlement: { ...settled, notify: noticeFor(job, told) }, waitsForProvider };
}

/** What operators are shown of a dead letter besides its reason. */
function deathOf({ job, providerError }: MadeAttempt): Pick<Settlement, "death"> {
  return { death: { sizeBytes: Buffer.byteLength(job.body), providerError } };
}

type Decided = Pick<Settlement, "event" | "label"> &
  Partial<Pick<Settlement, "providerAckId" | "delayMs" | "isCounted">> &
  Partial<Pick<Decision, "waitsForProvider">>;

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
      return decideRetry(rules, made, outcome);
    default:
      return outcome satisfies never;
  }
}

type RetryOutcome = Extract<DeliveryOutcome, { kind: "retry" }>;

/**
 * A failed attempt waits by its schedule even if its provider is away: what fails may be its own fault, and
 * then it must neither come again at once nor stand before others. It waits for the provider if it was a probe,
 * if the key is refused, or if it would die of an outage.
 */
function decideRetry(rules: RetryRules, made: MadeAttempt, outcome: RetryOutcome): Decided {
  const { isProbe, isProviderAway } = made;
  const planned = planOf(rules, made, outcome);
  const isBlameless = outcome.pace === "slow" || planned.event === "die";
  return isProbe || (isProviderAway && isBlameless)
    ? { event: "retry", label: "", isCounted: !isProbe, waitsForProvider: true }
    : planned;
}

function planOf(
  { scheduleMs, ageMaxMs, random }: RetryRules,
  { begun: { entry, nowMs }, durationMs }: MadeAttempt,
  { pace, retryAfterMs }: RetryOutcome,
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
