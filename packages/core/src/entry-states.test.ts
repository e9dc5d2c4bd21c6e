import { publisherIdSchema } from "@adrelay/contract";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  decideIntake,
  decideTransition,
  ENTRY_EVENTS,
  ENTRY_STATES,
  type EntryState,
  type KnownEntry,
} from "./entry-states.ts";

test("every state has an answer to every event", () => {
  for (const state of ENTRY_STATES) {
    for (const event of ENTRY_EVENTS) {
      expect(["moved", "same", "illegal"]).toContain(decideTransition(state, event).kind);
    }
  }
});

/** Whether a state is an end state. Not a dead letter's or a missed one's: a replay or an acknowledgment leaves it. */
const IS_END: Record<EntryState, boolean> = {
  absent: false,
  awaiting: false,
  queued: false,
  dead: false,
  missed: false,
  delivered: true,
  refused: true,
  discarded: true,
  expired: true,
  unacknowledgeable: true,
  abandoned: true,
};

test("only the outcome of an attempt that was under way leads out of an end state", () => {
  const left = ENTRY_STATES.filter((one) => IS_END[one]).flatMap((state) =>
    ENTRY_EVENTS.filter((event) => decideTransition(state, event).kind === "moved").map(
      (event) => `${state} × ${event}`,
    ),
  );
  expect(left).toEqual(["discarded × deliver", "discarded × refuse"]);
});

test("an erasure ends whatever has a text that isn't delivered", () => {
  const ended = ENTRY_STATES.filter((state) => {
    const transition = decideTransition(state, "erase");
    return transition.kind === "moved" && transition.to === "discarded";
  });
  expect(ended).toEqual(["queued", "dead"]);
});

test("a refused acknowledgment is never replayed or retried", () => {
  expect(decideTransition("refused", "replay").kind).toBe("illegal");
  expect(decideTransition("refused", "retry").kind).toBe("illegal");
});

test("any walk from a filled injection stays in states that are counted", () => {
  const walk = fc.array(fc.constantFrom(...ENTRY_EVENTS), { maxLength: 40 });
  fc.assert(
    fc.property(walk, (events) => {
      let state: EntryState = "awaiting";
      for (const event of events) {
        const transition = decideTransition(state, event);
        state = transition.kind === "moved" ? transition.to : state;
        expect(["absent", "unacknowledgeable", "abandoned"]).not.toContain(state);
      }
    }),
  );
});

const ours = publisherIdSchema.parse("ours");
const theirs = publisherIdSchema.parse("theirs");
const entry = (state: KnownEntry["state"], textHash?: string): KnownEntry => ({
  state,
  publisher: ours,
  textHash,
  hasTurn: false,
});
const decide = (known: KnownEntry | undefined, acceptsUnknown = true) =>
  decideIntake({ entry: known, publisher: ours, textHash: "h1", acceptsUnknown });

test("an unknown id is accepted or refused as configured", () => {
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
        acceptsUnknown: true,
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
  "in state %s another text is a conflict, but a repeat after a turn",
  (state) => {
    expect(decide(entry(state, "h1"))).toEqual({ kind: "repeat" });
    expect(decide(entry(state, "h2"))).toEqual({ kind: "refuse", code: "acknowledgment_conflict" });
    expect(decide({ ...entry(state, "h2"), hasTurn: true })).toEqual({ kind: "repeat" });
  },
);
