/**
 * The life of an ad response, drawn in docs/state-machine.md.
 *
 * The scripts in packages/store make these transitions. The tables here are the oracle of packages/store/test/ledger.test.ts
 * and accept.test.ts, which compare the two for every state and every event.
 */
import type { PublisherId } from "@adrelay/contract";

/** `absent`: an id that the ledger doesn't know, or has forgotten. */
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
  /** The provider answered 200 after the caller had been given a fallback. */
  "record_abandoned",
  /** An acknowledgment was put on the queue. */
  "accept",
  "deliver",
  "refuse",
  /** An attempt failed, or its fate is unknown, and another one is due. */
  "retry",
  "die",
  /** The deadline passed without an acknowledgment. */
  "miss",
  "replay",
  /** An operator ended it. While an attempt is under way, that is refused: its outcome isn't known. */
  "discard",
  /** A dead letter's retention passed. */
  "expire",
  /** What a user wrote is erased, also while an attempt is under way. Without its text, nothing can be delivered. */
  "erase",
] as const;
export type EntryEvent = (typeof ENTRY_EVENTS)[number];

export type Transition =
  | { readonly kind: "moved"; readonly to: Exclude<EntryState, "absent"> }
  /** It happened before: nothing changes and nothing is counted. */
  | { readonly kind: "same" }
  | { readonly kind: "illegal" };

type Target = Exclude<EntryState, "absent"> | "same";

/** Once accepted, an acknowledgment's repeats get its present state, and a record of its injection changes nothing. */
const ENDED = {
  accept: "same",
  record_filled: "same",
  record_unfilled: "same",
  record_abandoned: "same",
} as const;
const SOLD_TO_NOBODY = {
  record_filled: "same",
  record_unfilled: "same",
  record_abandoned: "same",
  erase: "same",
} as const;

const TABLE: Record<EntryState, Partial<Record<EntryEvent, Target>>> = {
  absent: {
    record_filled: "awaiting",
    record_unfilled: "unacknowledgeable",
    record_abandoned: "abandoned",
    accept: "queued",
  },
  // No text has come yet.
  awaiting: { ...ENDED, accept: "queued", miss: "missed", erase: "same" },
  missed: { ...ENDED, accept: "queued", miss: "same", erase: "same" },
  queued: {
    ...ENDED,
    deliver: "delivered",
    refuse: "refused",
    retry: "queued",
    die: "dead",
    replay: "same",
    discard: "discarded",
    erase: "discarded",
  },
  // A worker that was stopped during an attempt may learn that a dead letter arrived after all.
  dead: {
    ...ENDED,
    deliver: "delivered",
    refuse: "refused",
    die: "same",
    replay: "queued",
    discard: "discarded",
    expire: "expired",
    erase: "discarded",
  },
  delivered: { ...ENDED, deliver: "same", erase: "same" },
  refused: { ...ENDED, refuse: "same", erase: "same" },
  // An erasure doesn't wait for an attempt that is under way. If the provider takes it, that is true, and is booked.
  discarded: {
    ...ENDED,
    deliver: "delivered",
    refuse: "refused",
    retry: "same",
    die: "same",
    discard: "same",
    erase: "same",
  },
  expired: { ...ENDED, expire: "same", erase: "same" },
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

/** What the ledger knows of the ad response that an acknowledgment names. */
export interface KnownEntry {
  readonly state: Exclude<EntryState, "absent">;
  readonly publisher: PublisherId;
  /** Fingerprint of the accepted text; undefined before one was accepted, and after it was erased. */
  readonly textHash: string | undefined;
  /** A turn of the model proxy has it, or had it. */
  readonly hasTurn: boolean;
}

export interface IntakeQuestion {
  readonly entry: KnownEntry | undefined;
  readonly publisher: PublisherId;
  readonly textHash: string;
  /** Whether an id that the ledger doesn't know is accepted (UNKNOWN_ACK). */
  readonly acceptsUnknown: boolean;
}

export type IntakeDecision =
  | { readonly kind: "enqueue" }
  /** The same text was accepted before: the caller gets its present state. */
  | { readonly kind: "repeat" }
  | {
      readonly kind: "refuse";
      readonly code:
        | "unknown_ad_response"
        | "other_publisher"
        | "not_acknowledgeable"
        | "acknowledgment_conflict";
    };

/** What to do with an acknowledgment, before anything is written. */
export function decideIntake({ entry, publisher, textHash, acceptsUnknown }: IntakeQuestion): IntakeDecision {
  if (entry === undefined) {
    return acceptsUnknown ? { kind: "enqueue" } : { kind: "refuse", code: "unknown_ad_response" };
  }
  if (entry.publisher !== publisher) {
    return { kind: "refuse", code: "other_publisher" };
  }
  switch (entry.state) {
    case "unacknowledgeable":
    case "abandoned":
      return { kind: "refuse", code: "not_acknowledgeable" };
    case "awaiting":
    case "missed":
      return { kind: "enqueue" };
    case "queued":
    case "delivered":
    case "refused":
    case "dead":
    case "discarded":
    case "expired":
      // Without a fingerprint nobody knows what was accepted, so any text counts as the same. The proxy and the backend may both
      // acknowledge an ad response with a turn: the first text wins, and the second is told how it stands.
      return entry.textHash === undefined || entry.textHash === textHash || entry.hasTurn
        ? { kind: "repeat" }
        : { kind: "refuse", code: "acknowledgment_conflict" };
    default:
      return entry.state satisfies never;
  }
}
