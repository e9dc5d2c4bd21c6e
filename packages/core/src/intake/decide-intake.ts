import type { PublisherId } from "@adrelay/contract";
import type { EntryState } from "../entry/state-machine.ts";

/** What the ledger knows of the ad response that an acknowledgment names. */
export interface KnownEntry {
  readonly state: Exclude<EntryState, "absent">;
  readonly publisher: PublisherId;
  /** Fingerprint of the accepted text; undefined before one was accepted. */
  readonly textHash: string | undefined;
}

export interface IntakeQuestion {
  readonly entry: KnownEntry | undefined;
  readonly publisher: PublisherId;
  readonly textHash: string;
  /** Whether an id that the ledger doesn't know is taken (UNKNOWN_ACK). */
  readonly takesUnknown: boolean;
}

export type IntakeDecision =
  | { readonly kind: "enqueue" }
  /** The same text was accepted before: the caller is told how it stands. */
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
export function decideIntake({ entry, publisher, textHash, takesUnknown }: IntakeQuestion): IntakeDecision {
  if (entry === undefined) {
    return takesUnknown ? { kind: "enqueue" } : { kind: "refuse", code: "unknown_ad_response" };
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
      return entry.textHash === textHash
        ? { kind: "repeat" }
        : { kind: "refuse", code: "acknowledgment_conflict" };
    default:
      return entry.state satisfies never;
  }
}
