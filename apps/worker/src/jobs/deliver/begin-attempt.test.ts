import { publisherIdSchema } from "@adrelay/contract";
import type { StandingLook } from "@adrelay/ledger";
import { expect, test } from "vitest";
import { standingSeen } from "./begin-attempt.ts";

const publisher = publisherIdSchema.parse("acme");
const look: StandingLook = {
  publisher,
  begun: {
    kind: "repeat",
    nowMs: 1_000_000,
    entry: {
      state: "queued",
      nextAttemptAtMs: undefined,
      queuedAtMs: 900_000,
      attempts: 0,
      failedAttempts: 0,
      deadReason: undefined,
    },
  },
  askedAtMs: 5000,
};

test.each([
  ["a look at the job's own publisher that is a second old", look, 6000, look.begun],
  ["a look that is older", look, 6001, undefined],
  ["a look at another publisher's entry", { ...look, publisher: "theirs" }, 5000, undefined],
  ["no look", undefined, 5000, undefined],
])("%s", (_what, seen, nowMs, expected) => {
  expect(standingSeen(seen, publisher, nowMs)).toBe(expected);
});
