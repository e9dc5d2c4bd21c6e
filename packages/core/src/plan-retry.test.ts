import fc from "fast-check";
import { expect, test } from "vitest";
import { JITTER_SHARE, planRetry, type RetryQuestion, SLOW_RETRY_MS } from "./plan-retry.ts";

const HOUR_MS = 3_600_000;
const question: RetryQuestion = {
  scheduleMs: [5000, 30_000, 120_000],
  failedAttempts: 1,
  ageMs: 0,
  ageMaxMs: 72 * HOUR_MS,
  pace: "scheduled",
  retryAfterMs: undefined,
  random: 0.5,
};

test.each([
  [1, 5000],
  [2, 30_000],
  [3, 120_000],
  [4, 120_000],
  [1000, 120_000],
])("after failure %d the wait without jitter is %d ms", (failedAttempts, delayMs) => {
  expect(planRetry({ ...question, failedAttempts })).toEqual({ kind: "retry", delayMs });
});

test("a wrong key is retried slowly", () => {
  expect(planRetry({ ...question, pace: "slow" })).toEqual({ kind: "retry", delayMs: SLOW_RETRY_MS });
});

test("a longer Retry-After wins over the schedule and a shorter one doesn't", () => {
  expect(planRetry({ ...question, retryAfterMs: 60_000 })).toEqual({ kind: "retry", delayMs: 60_000 });
  expect(planRetry({ ...question, retryAfterMs: 1 })).toEqual({ kind: "retry", delayMs: 5000 });
});

test("the last attempt falls on the age limit and is the last", () => {
  const ageMaxMs = 72 * HOUR_MS;
  expect(planRetry({ ...question, ageMs: ageMaxMs - 10 })).toEqual({ kind: "retry", delayMs: 10 });
  expect(planRetry({ ...question, ageMs: ageMaxMs })).toEqual({ kind: "too_old" });
});

test("every wait is within the jitter of its step, or the time that is left", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: HOUR_MS }), { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 100 }),
      fc.integer({ min: 0, max: 80 * HOUR_MS }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (scheduleMs, failedAttempts, ageMs, random) => {
        const plan = planRetry({ ...question, scheduleMs, failedAttempts, ageMs, random });
        const leftMs = question.ageMaxMs - ageMs;
        if (plan.kind === "too_old") {
          expect(leftMs).toBeLessThanOrEqual(0);
          return;
        }
        const stepMs = scheduleMs[Math.min(failedAttempts, scheduleMs.length) - 1] ?? 0;
        expect(plan.delayMs).toBeGreaterThanOrEqual(Math.min(stepMs * (1 - JITTER_SHARE), leftMs));
        expect(plan.delayMs).toBeLessThanOrEqual(Math.min(Math.ceil(stepMs * (1 + JITTER_SHARE)), leftMs));
      },
    ),
  );
});
