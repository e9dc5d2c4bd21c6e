import { publisherIdSchema } from "@adrelay/contract";
import { expect, test } from "vitest";
import { ENTRY_STATES } from "../entry/state-machine.ts";
import { decideIntake, type KnownEntry } from "./decide-intake.ts";

const ours = publisherIdSchema.parse("ours");
const theirs = publisherIdSchema.parse("theirs");
const entry = (state: KnownEntry["state"], textHash?: string): KnownEntry => ({
  state,
  publisher: ours,
  textHash,
});
const decide = (known: KnownEntry | undefined, takesUnknown = true) =>
  decideIntake({ entry: known, publisher: ours, textHash: "h1", takesUnknown });

test("an unknown id is taken or refused as configured", () => {
  expect(decide(undefined)).toEqual({ kind: "enqueue" });
  expect(decide(undefined, false)).toEqual({ kind: "refuse", code: "unknown_ad_response" });
});

test("another publisher's ad response is refused in every state", () => {
  for (const state of ENTRY_STATES) {
    if (state !== "absent") {
      const decision = decideIntake({
        entry: entry(state, "h1"),
        publisher: theirs,
        textHash: "h1",
        takesUnknown: true,
      });
      expect(decision).toEqual({ kind: "refuse", code: "other_publisher" });
    }
  }
});

test.each(["awaiting", "missed"] as const)("a first acknowledgment in state %s is queued", (state) => {
  expect(decide(entry(state))).toEqual({ kind: "enqueue" });
});

test.each(["unacknowledgeable", "abandoned"] as const)(
  "an acknowledgment in state %s is refused",
  (state) => {
    expect(decide(entry(state))).toEqual({ kind: "refuse", code: "not_acknowledgeable" });
  },
);

test.each(["queued", "delivered", "refused", "dead", "discarded", "expired"] as const)(
  "in state %s the same text is a repeat and another text a conflict",
  (state) => {
    expect(decide(entry(state, "h1"))).toEqual({ kind: "repeat" });
    expect(decide(entry(state, "h2"))).toEqual({ kind: "refuse", code: "acknowledgment_conflict" });
  },
);
