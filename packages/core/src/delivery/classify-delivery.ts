import { adAckIdSchema, parseAcknowledgmentResponse, type Verdict, verdictSchema } from "@adrelay/contract";
import type { ProviderReply } from "./provider-reply.ts";
import { parseRetryAfterMs } from "./retry-after.ts";

/** What a provider's answer to an acknowledgment means for it (the table in docs/architecture.md). */
export type DeliveryOutcome =
  | {
      readonly kind: "delivered";
      /** Undefined after a 409 that doesn't say how the first acknowledgment ended. */
      readonly verdict: Verdict | undefined;
      readonly providerAckId: string | undefined;
      readonly code: AttemptCode;
    }
  | {
      readonly kind: "retry";
      /** `slow`: the key is wrong, not the acknowledgment, so haste doesn't help. */
      readonly pace: "scheduled" | "slow";
      readonly retryAfterMs: number | undefined;
      readonly code: AttemptCode;
    }
  | { readonly kind: "refused"; readonly code: AttemptCode }
  | { readonly kind: "dead"; readonly reason: DeadReason; readonly code: AttemptCode };

/** Why an acknowledgment became a dead letter: a bounded set, as it labels metrics. */
export const DEAD_REASONS = [
  "exhausted",
  "http_400",
  "http_404",
  "http_413",
  "http_422",
  "http_4xx",
  "redirected",
  "payload_lost",
] as const;
export type DeadReason = (typeof DEAD_REASONS)[number];

/** Each reason for people. */
export const DEAD_REASON_TEXTS: Readonly<Record<DeadReason, string>> = {
  exhausted: "The service could not be reached, or gave no usable answer, until the age limit.",
  http_400: "The service can't read this acknowledgment.",
  http_404: "The service doesn't know this ad response.",
  http_413: "The acknowledgment is larger than the service takes.",
  http_422: "The service finds a fault in this acknowledgment.",
  http_4xx: "The service refuses this request, with a status that says nothing more about it.",
  redirected: "The service answers with a redirect, which is never followed: check its address.",
  payload_lost: "The text is no longer in Redis, so there is nothing left to deliver.",
};

/** Short stable name of what came of an attempt: `ok`, `http_503`, `timeout` … */
export type AttemptCode = string;

/** Judges one reply. Total: every status and every failure has a class. */
export function classifyDelivery(reply: ProviderReply, nowMs: number): DeliveryOutcome {
  if (reply.kind === "failed") {
    return { kind: "retry", pace: "scheduled", retryAfterMs: undefined, code: reply.code };
  }
  const { status } = reply;
  if (status >= 200 && status < 300) {
    return classifySuccess(reply.body);
  }
  const code = `http_${status}`;
  if (status === 406) {
    return { kind: "refused", code };
  }
  if (status === 409) {
    return deliveredBefore(reply.body);
  }
  if (status === 401 || status === 403) {
    return { kind: "retry", pace: "slow", retryAfterMs: undefined, code };
  }
  if (status >= 500 || status === 408 || status === 425 || status === 429) {
    return {
      kind: "retry",
      pace: "scheduled",
      retryAfterMs: parseRetryAfterMs(reply.retryAfter, nowMs),
      code,
    };
  }
  return { kind: "dead", reason: deadReason(status), code };
}

function classifySuccess(body: unknown): DeliveryOutcome {
  const answer = parseAcknowledgmentResponse(body);
  if (answer === undefined) {
    return { kind: "retry", pace: "scheduled", retryAfterMs: undefined, code: "malformed_answer" };
  }
  const { status, ad_ack_id: providerAckId } = answer;
  return status === "recoverable_error"
    ? { kind: "retry", pace: "scheduled", retryAfterMs: undefined, code: status }
    : { kind: "delivered", verdict: status, providerAckId, code: status };
}

/** A 409: an earlier attempt arrived (invariant 4). Our own ad server adds how it ended; others need not. */
function deliveredBefore(body: unknown): DeliveryOutcome {
  const fields: Record<string, unknown> = typeof body === "object" && body !== null ? { ...body } : {};
  return {
    kind: "delivered",
    verdict: verdictSchema.safeParse(fields["acknowledgment_status"]).data,
    providerAckId: adAckIdSchema.safeParse(fields["ad_ack_id"]).data,
    code: "http_409",
  };
}

function deadReason(status: number): DeadReason {
  switch (status) {
    case 400:
    case 404:
    case 413:
    case 422:
      return `http_${status}`;
    default:
      return status >= 400 ? "http_4xx" : "redirected";
  }
}
