import fc from "fast-check";
import { expect, test } from "vitest";
import {
  decideTransition,
  ENTRY_EVENTS,
  ENTRY_STATES,
  type EntryState,
  isTerminal,
} from "./state-machine.ts";

test("every state has an answer to every event", () => {
  for (const state of ENTRY_STATES) {
    for (const event of ENTRY_EVENTS) {
      expect(["moved", "same", "illegal"]).toContain(decideTransition(state, event).kind);
    }
  }
});

test("no event leads out of a terminal state", () => {
  for (const state of ENTRY_STATES.filter(isTerminal)) {
    for (const event of ENTRY_EVENTS) {
      expect(decideTransition(state, event).kind, `${state} × ${event}`).not.toBe("moved");
    }
  }
});

test("a refused acknowledgment is never replayed or retried", () => {
  expect(decideTransition("refused", "replay").kind).toBe("illegal");
  expect(decideTransition("refused", "retry").kind).toBe("illegal");
});

test("any walk from a filled injection keeps to states that the books count", () => {
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
