import { publisherIdSchema } from "@adrelay/contract";
import { expect, test } from "vitest";
import { type BeginResult, decideAttempt, type PrefetchedEntry, usePrefetched } from "./attempt-start.ts";

const publisher = publisherIdSchema.parse("acme");
const entry = { nextAttemptAtMs: undefined, queuedAtMs: 900_000, attempts: 0, failedAttempts: 0 };
const prefetched: PrefetchedEntry = {
  publisher,
  begun: { kind: "queued", nowMs: 1_000_000, entry },
  requestedAtMs: 5000,
};

test.each([
  ["the job's own publisher, a second old, is used", prefetched, 6000, prefetched.begun],
  ["older than a second is not used", prefetched, 6001, undefined],
  ["another publisher's is not used", { ...prefetched, publisher: "theirs" }, 5000, undefined],
  ["none is not used", undefined, 5000, undefined],
])("a prefetched entry: %s", (_what, found, nowMs, expected) => {
  expect(usePrefetched(found, publisher, nowMs)).toBe(expected);
});

const queuedUntil = (nextAttemptAtMs: number): BeginResult => {
  return { kind: "queued", nowMs: 1000, entry: { ...entry, nextAttemptAtMs } };
};

test("an attempt is due at its time, or so shortly before that waiting isn't worth a turn", () => {
  expect(decideAttempt(queuedUntil(1050))).toMatchObject({ kind: "due", nowMs: 1000 });
  expect(decideAttempt(queuedUntil(1051))).toEqual({ kind: "early", delayMs: 51 });
});

test("nothing is attempted in an end state, nor for what was never accepted", () => {
  expect(decideAttempt({ kind: "ended", state: "delivered" })).toEqual({ kind: "ended", why: "delivered" });
  expect(decideAttempt({ kind: "dead", reason: "http_400" })).toEqual({ kind: "dead", reason: "http_400" });
  expect(decideAttempt({ kind: "not_accepted", why: "conflict" })).toEqual({
    kind: "ended",
    why: "conflict",
  });
});
