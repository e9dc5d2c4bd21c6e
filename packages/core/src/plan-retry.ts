/** Scheduled waits are changed by up to this share, so that retries after an outage spread out. */
export const JITTER_SHARE = 0.2;
/** The least wait if an early retry doesn't help, as after a 401 or 403. */
export const SLOW_RETRY_MS = 300_000;

export interface RetryQuestion {
  /** Waits after the first, second … failed attempt; the last repeats. Not empty. */
  readonly scheduleMs: readonly number[];
  /** How many attempts have failed since the acknowledgment was queued or replayed; 1 or more. */
  readonly failedAttempts: number;
  /** Time since the acknowledgment was queued or replayed. */
  readonly ageMs: number;
  readonly ageMaxMs: number;
  readonly pace: "scheduled" | "slow";
  /** What the provider asked for, if it did. */
  readonly retryAfterMs: number | undefined;
  /** Uniform in [0, 1). */
  readonly random: number;
}

export type RetryPlan = { readonly kind: "retry"; readonly delayMs: number } | { readonly kind: "too_old" };

/**
 * When to try again. A wait that would pass the age limit ends at it, so that the last attempt is made at the age limit
 * and not long before.
 */
export function planRetry(question: RetryQuestion): RetryPlan {
  const leftMs = question.ageMaxMs - question.ageMs;
  if (leftMs <= 0) {
    return { kind: "too_old" };
  }
  const step = Math.min(question.failedAttempts, question.scheduleMs.length) - 1;
  const scheduledMs = question.scheduleMs[step] ?? 0;
  const jitteredMs = scheduledMs * (1 + JITTER_SHARE * (2 * question.random - 1));
  const leastMs = question.pace === "slow" ? SLOW_RETRY_MS : 0;
  const delayMs = Math.max(jitteredMs, leastMs, question.retryAfterMs ?? 0);
  return { kind: "retry", delayMs: Math.ceil(Math.min(delayMs, leftMs)) };
}
