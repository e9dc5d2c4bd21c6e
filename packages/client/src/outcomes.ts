/** What an injection and an acknowledgment can come to. */
import type { RelayError } from "./errors.ts";
import type { AcknowledgmentStatus } from "./wire.ts";

/** Why there is no ad. */
export type NoAdReason =
  /** 202: there is no ad for this prompt. */
  | "no_fill"
  /** 201: the service gives no ad to this prompt. */
  | "rejected"
  /** A 202 of the relay itself: the service failed. */
  | "fallback"
  /** The relay gave no answer within `timeoutMs`. */
  | "timeout"
  /** The signal fired. */
  | "aborted"
  | "unreachable"
  /** 4xx: the request or the key has a fault. `error.code` says which. */
  | "refused"
  /** 5xx, or an answer that isn't the relay's. */
  | "failed"
  /** The request can't be written as JSON. */
  | "unsendable"
  | "closed";

/** How an acknowledgment stands after the first attempt to send it. */
export type AcknowledgmentOutcome =
  | { readonly kind: "accepted"; readonly adAckId: string; readonly status: AcknowledgmentStatus }
  /** The relay will never accept it: `error.code` says why. */
  | { readonly kind: "refused"; readonly error: RelayError }
  /** It is in the outbox, and will be sent again. */
  | { readonly kind: "waiting" }
  /** It can't be sent any more: the outbox was full, or the client is closed. */
  | { readonly kind: "lost"; readonly error: RelayError };
