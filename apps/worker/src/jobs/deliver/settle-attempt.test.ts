import { adAckIdSchema, adResponseIdSchema, publisherIdSchema } from "@adrelay/contract";
import { classifyDelivery, type ProviderReply } from "@adrelay/core";
import { expect, test } from "vitest";
import { decideSettlement, type MadeAttempt } from "./settle-attempt.ts";

const SECOND_MS = 1000;
const AGE_MAX_MS = 60 * SECOND_MS;
const RULES = { scheduleMs: [5 * SECOND_MS], ageMaxMs: AGE_MAX_MS, random: () => 0.5 };
const ID = adResponseIdSchema.parse("6f2c8b0e-3b52-4e0e-9a39-0d6a3a1b7c11");
const NOW_MS = 1_000_000;

const answered = (status: number, retryAfter?: string): ProviderReply => {
  return { kind: "answered", status, body: undefined, retryAfter };
};

function decide(reply: ProviderReply, more: Partial<MadeAttempt> & { readonly ageMs?: number }) {
  const { ageMs = 0, ...rest } = more;
  const entry = {
    id: ID,
    state: "queued" as const,
    publisher: publisherIdSchema.parse("default"),
    textHash: undefined,
    recordedAtMs: undefined,
    deadlineAtMs: undefined,
    acceptedAtMs: undefined,
    queuedAtMs: NOW_MS - ageMs,
    nextAttemptAtMs: undefined,
    endedAtMs: undefined,
    attempts: 0,
    failedAttempts: 0,
    lastCode: undefined,
    verdict: undefined,
    deadReason: undefined,
    providerAckId: undefined,
    attemptLog: [],
    sizeBytes: undefined,
    providerError: undefined,
    isLate: false,
  };
  const { settlement, waitsForProvider } = decideSettlement(RULES, {
    job: {
      v: 1,
      adResponseId: ID,
      adAckId: adAckIdSchema.parse(ID),
      publisher: entry.publisher,
      body: "{}",
      requestId: "r",
    },
    begun: { kind: "due", entry, nowMs: NOW_MS },
    outcome: classifyDelivery(reply, NOW_MS),
    providerError: undefined,
    durationMs: 0,
    isProbe: false,
    isProviderAway: false,
    ...rest,
  });
  const { event, delayMs, isCounted } = settlement;
  return { event, delayMs, isCounted, waitsForProvider };
}

const AWAY = { isProviderAway: true } as const;
const TOO_OLD = { ageMs: 2 * AGE_MAX_MS } as const;

test("an attempt that fails as its provider goes away waits by its schedule", () => {
  const byIts = (delayMs: number) => ({ event: "retry", delayMs, isCounted: true, waitsForProvider: false });
  expect(decide(answered(503), AWAY)).toEqual(byIts(5 * SECOND_MS));
  expect(decide(answered(429, "20"), AWAY)).toEqual(byIts(20 * SECOND_MS));
});

test("a refused key says nothing of the acknowledgment, which waits for its provider", () => {
  expect(decide(answered(401), AWAY)).toMatchObject({ event: "retry", waitsForProvider: true });
  expect(decide(answered(403), AWAY)).toMatchObject({ event: "retry", waitsForProvider: true });
  expect(decide(answered(403), {})).toMatchObject({ event: "retry", waitsForProvider: false });
});

test("none dies of its age while its provider is away", () => {
  expect(decide(answered(503), { ...AWAY, ...TOO_OLD })).toMatchObject({
    event: "retry",
    waitsForProvider: true,
  });
  expect(decide(answered(503), TOO_OLD)).toMatchObject({ event: "die", waitsForProvider: false });
});

test("a probe that fails after another one got through costs its acknowledgment nothing", () => {
  expect(decide(answered(503), { ...TOO_OLD, isProbe: true })).toEqual({
    event: "retry",
    delayMs: 0,
    isCounted: false,
    waitsForProvider: true,
  });
});
