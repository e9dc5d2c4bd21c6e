/**
 * The life of an ad response, drawn in docs/state-machine.md. The ledger's scripts carry these
 * transitions out; a test walks every state with every event through both and compares.
 */

/** `absent` stands for an id that the ledger doesn't know (or no longer). */
export const ENTRY_STATES = [
  "absent",
  "awaiting",
  "queued",
  "delivered",
  "refused",
  "dead",
  "missed",
  "discarded",
  "expired",
  "unacknowledgeable",
  "abandoned",
] as const;
export type EntryState = (typeof ENTRY_STATES)[number];

export const ENTRY_EVENTS = [
  /** The provider answered an injection with 200 and the caller has it. */
  "record_filled",
  /** The provider answered 201 or 202, or the caller was given a fallback. */
  "record_unfilled",
  /** The provider answered 200 after the caller had something else. */
  "record_abandoned",
  /** An acknowledgment is in the queue. */
  "accept",
  "deliver",
  "refuse",
  /** An attempt failed and another one is due. */
  "retry",
  "die",
  /** The deadline passed without an acknowledgment. */
  "miss",
  "replay",
  "discard",
  /** A dead letter's retention passed. */
  "expire",
] as const;
export type EntryEvent = (typeof ENTRY_EVENTS)[number];

export type Transition =
  | { readonly kind: "moved"; readonly to: Exclude<EntryState, "absent"> }
  /** A repeat of something that already happened: nothing changes and nothing is counted. */
  | { readonly kind: "same" }
  | { readonly kind: "illegal" };

type Target = Exclude<EntryState, "absent"> | "same";

/** An acknowledgment that ended, or is a dead letter: its repeats are told how it stands. */
const ENDED = {
  accept: "same",
  record_filled: "same",
  record_unfilled: "same",
  record_abandoned: "same",
} as const;
const SOLD_TO_NOBODY = { record_filled: "same", record_unfilled: "same", record_abandoned: "same" } as const;

const TABLE: Record<EntryState, Partial<Record<EntryEvent, Target>>> = {
  absent: {
    record_filled: "awaiting",
    record_unfilled: "unacknowledgeable",
    record_abandoned: "abandoned",
    accept: "queued",
  },
  awaiting: { ...ENDED, accept: "queued", miss: "missed" },
  missed: { ...ENDED, accept: "queued", miss: "same" },
  queued: { ...ENDED, deliver: "delivered", refuse: "refused", retry: "queued", die: "dead", replay: "same" },
  // A worker that was stopped in mid-attempt can learn that a dead letter arrived after all.
  dead: {
    ...ENDED,
    deliver: "delivered",
    refuse: "refused",
    die: "same",
    replay: "queued",
    discard: "discarded",
    expire: "expired",
  },
  delivered: { ...ENDED, deliver: "same" },
  refused: { ...ENDED, refuse: "same" },
  discarded: { ...ENDED, discard: "same" },
  expired: { ...ENDED, expire: "same" },
  unacknowledgeable: SOLD_TO_NOBODY,
  abandoned: SOLD_TO_NOBODY,
};

/** What an event does to an ad response in a state. Total: every pair has an answer. */
export function decideTransition(state: EntryState, event: EntryEvent): Transition {
  const target = TABLE[state][event];
  if (target === undefined) {
    return { kind: "illegal" };
  }
  return target === "same" ? { kind: "same" } : { kind: "moved", to: target };
}

/** States in which no attempt may be made (invariants 3 and 5). */
export function isTerminal(state: EntryState): boolean {
  switch (state) {
    case "delivered":
    case "refused":
    case "discarded":
    case "expired":
    case "unacknowledgeable":
    case "abandoned":
      return true;
    case "absent":
    case "awaiting":
    case "queued":
    case "dead":
    case "missed":
      return false;
    default:
      return state satisfies never;
  }
}
