import { adAckIdSchema, adResponseIdSchema, publisherIdSchema } from "@adrelay/contract";
import { classifyDelivery, type ProviderReply } from "@adrelay/core";
import { expect, test } from "vitest";
import { type ClassifiedAttempt, decideSettlement } from "./decide-settlement.ts";

const SECOND_MS = 1000;
const AGE_MAX_MS = 60 * SECOND_MS;
const RULES = {
  scheduleMs: [5 * SECOND_MS],
  ageMaxMs: AGE_MAX_MS,
  probeRestMs: 15 * SECOND_MS,
  random: () => 0.5,
};
const ID = adResponseIdSchema.parse("6f2c8b0e-3b52-4e0e-9a39-0d6a3a1b7c11");
const NOW_MS = 1_000_000;

const answered = (status: number, retryAfter?: string): ProviderReply => {
  return { kind: "answered", status, body: undefined, retryAfter };
};

function decide(
  reply: ProviderReply,
  {
    ageMs = 0,
    failedAttempts = 0,
    ageMaxMs = AGE_MAX_MS,
    ...more
  }: Partial<ClassifiedAttempt> & {
    readonly ageMs?: number;
    readonly failedAttempts?: number;
    readonly ageMaxMs?: number;
  } = {},
) {
  const job = {
    v: 1,
    adResponseId: ID,
    adAckId: adAckIdSchema.parse(ID),
    publisher: publisherIdSchema.parse("default"),
    body: "{}",
    requestId: "r",
  } as const;
  const entry = { queuedAtMs: NOW_MS - ageMs, nextAttemptAtMs: undefined, attempts: 0, failedAttempts };
  return decideSettlement(
    { ...RULES, ageMaxMs },
    {
      due: { job, entry, nowMs: NOW_MS },
      outcome: classifyDelivery(reply, NOW_MS),
      providerError: undefined,
      durationMs: 0,
      bodyBytes: 2,
      isProbe: false,
      parkAt: undefined,
      ...more,
    },
  );
}

const AWAY = { parkAt: "acme" } as const;
const PARKED = { kind: "parked", account: "acme" } as const;
const TOO_OLD = { ageMs: 2 * AGE_MAX_MS } as const;

test("an acknowledgment that fails as an outage begins waits for its schedule", () => {
  const afterDelay = (delayMs: number) => ({
    event: "retry",
    next: { kind: "after_delay", delayMs },
    isCounted: true,
  });
  const providerError = "closed_today";
  expect(decide(answered(503), { ...AWAY, providerError })).toMatchObject({
    ...afterDelay(5 * SECOND_MS),
    providerError,
  });
  expect(decide(answered(429, "20"), AWAY)).toMatchObject(afterDelay(20 * SECOND_MS));
});

test("an acknowledgment whose key is refused comes again soon the first time, and slowly after that", () => {
  const waitAfter = (failedAttempts: number) => {
    const settlement = decide(answered(401), { failedAttempts, ageMaxMs: 3_600_000 });
    return "next" in settlement && settlement.next.kind === "after_delay"
      ? settlement.next.delayMs
      : undefined;
  };
  expect(waitAfter(0)).toBe(5 * SECOND_MS);
  expect(waitAfter(1)).toBe(300 * SECOND_MS);
});

test("a refused key says nothing about the acknowledgment, which is parked", () => {
  expect(decide(answered(401), AWAY)).toMatchObject({ event: "retry", next: PARKED });
  expect(decide(answered(403), AWAY)).toMatchObject({ event: "retry", next: PARKED });
  expect(decide(answered(403))).toMatchObject({ event: "retry", next: { kind: "after_delay" } });
});

test("no acknowledgment dies of its age while its provider is down", () => {
  expect(decide(answered(503), { ...AWAY, ...TOO_OLD })).toMatchObject({ event: "retry", next: PARKED });
  expect(decide(answered(503), TOO_OLD)).toMatchObject({ event: "die", reason: "exhausted" });
});

test.each([
  [answered(503), 15],
  [answered(429, "5"), 15],
  [answered(429, "60"), 60],
  [answered(403), 15],
])("a probe that ends as %j is no probe again for %i seconds, and doesn't count", (reply, seconds) => {
  const rested = {
    event: "retry",
    next: { kind: "after_delay", delayMs: seconds * SECOND_MS },
    isCounted: false,
  };
  expect(decide(reply, { ...AWAY, isProbe: true })).toMatchObject(rested);
  expect(decide(reply, { ...AWAY, ...TOO_OLD, isProbe: true })).toMatchObject(rested);
  expect(decide(reply, { isProbe: true })).toMatchObject(rested);
});

test.each([
  [answered(503), "exhausted"],
  [answered(403), "blocked"],
  [answered(302), "blocked"],
  [{ ...answered(403), body: { code: "other_publisher" } }, "forbidden"],
  [{ ...answered(403), body: { code: "key_revoked" } }, "exhausted"],
] as const)("what ends as %j at the age limit dies as %s while others are delivered", (reply, reason) => {
  expect(decide(reply, TOO_OLD)).toMatchObject({ event: "die", reason });
});

test("an attempt that may have arrived is ambiguous and repeated on schedule", () => {
  const timeout = { kind: "failed", stage: "after_send", code: "timeout" } as const;
  expect(decide(timeout)).toMatchObject({
    event: "ambiguous",
    code: "timeout",
    next: { kind: "after_delay", delayMs: 5 * SECOND_MS },
    isCounted: true,
  });
  expect(decide({ ...timeout, stage: "before_send" })).toMatchObject({ event: "retry", code: "timeout" });
  expect(decide(timeout, { ...AWAY, ...TOO_OLD })).toMatchObject({ event: "ambiguous", next: PARKED });
  expect(decide(timeout, TOO_OLD)).toMatchObject({ event: "die", reason: "exhausted", code: "timeout" });
});
