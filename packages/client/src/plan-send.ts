/** The rules of sending an acknowledgment: what an answer means, and when to try again. Pure. */
import { type RelayError, RelayProblemError } from "./errors.ts";
import { errorOf, type Reply, retryAfterMs } from "./http.ts";
import { type AcknowledgmentStatus, parseAccepted } from "./wire.ts";

/** What one attempt to send an acknowledgment came to. */
export type Attempt =
  | { readonly kind: "accepted"; readonly adAckId: string; readonly status: AcknowledgmentStatus }
  /** The relay will never accept it. */
  | { readonly kind: "refused"; readonly error: RelayProblemError }
  | {
      readonly kind: "retry";
      readonly error: RelayError;
      /** `relay`: the others would fare no better now. `one`: only this acknowledgment meets it, as far as is known. */
      readonly about: "relay" | "one";
      /** The relay asks to be left alone for so long. */
      readonly afterMs: number;
    };

/** Problems that the same acknowledgment will always meet. A wrong key or a wrong address can be corrected. */
const FINAL: ReadonlySet<string> = new Set([
  "other_publisher",
  "unknown_ad_response",
  "not_acknowledgeable",
  "acknowledgment_conflict",
  "already_acknowledged",
  "invalid_json",
  "payload_too_large",
  "unsupported_media_type",
  "validation_failed",
]);

/** Statuses below 500 that are about the relay or the key and not about the request. */
const ABOUT_RELAY: ReadonlySet<number> = new Set([401, 408, 429]);

/**
 * What an answer to an acknowledgment means. Only the relay's own problems are final: a 404 or 406 of a proxy in front of it
 * says nothing about the acknowledgment.
 */
export function classifyReply(reply: Reply, nowMs: number): Attempt {
  if (reply.kind === "failed") {
    return { kind: "retry", error: reply.error, about: "relay", afterMs: 0 };
  }
  const { status, headers, body } = reply;
  const accepted = status >= 200 && status < 300 ? parseAccepted(body) : undefined;
  if (accepted !== undefined) {
    return { kind: "accepted", ...accepted };
  }
  const error = errorOf(reply);
  if (error instanceof RelayProblemError && FINAL.has(error.code)) {
    return { kind: "refused", error };
  }
  const isAboutRelay =
    status < 400 || status >= 500 || ABOUT_RELAY.has(status) || error.code === "key_revoked";
  return {
    kind: "retry",
    error,
    about: isAboutRelay ? "relay" : "one",
    afterMs: retryAfterMs(headers, nowMs),
  };
}

export interface RetryOptions {
  /** The wait after the first failure. It doubles with each further one. */
  readonly firstMs: number;
  readonly maxMs: number;
  /** How long an acknowledgment is sent again, from when it was stored. */
  readonly giveUpAfterMs: number;
}

/** The wait after the nth failure in a row, from 1. Half of it is random, so that many processes don't come back at once. */
export function backoffMs(
  failures: number,
  { firstMs, maxMs }: Pick<RetryOptions, "firstMs" | "maxMs">,
  random: () => number,
): number {
  const fullMs = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 30));
  return fullMs / 2 + (random() * fullMs) / 2;
}
