/** Providers' replies, and what a reply to an acknowledgment means for it. */
import { adAckIdSchema, parseAcknowledgmentResponse, type Verdict, verdictSchema } from "@adrelay/contract";

/**
 * The reply to one call to a provider, before it is classified.
 *
 * `stage` says whether the provider may have received the request, which decides whether a second attempt may double it:
 * `before_send` can't have arrived, `after_send` may have.
 */
export type ProviderReply =
  | {
      readonly kind: "answered";
      readonly status: number;
      /** The body parsed as JSON; undefined if it isn't JSON. */
      readonly body: unknown;
      /** The Retry-After header, unchanged. */
      readonly retryAfter: string | undefined;
    }
  | {
      readonly kind: "failed";
      readonly stage: "before_send" | "after_send";
      readonly code: CallFailure;
      /** The code of the error behind it, for logs: a short token such as ENOTFOUND. */
      readonly cause?: string | undefined;
    };

/** Why there is no complete answer. The codes are stable: they are shown to operators and stored with attempts. */
export type CallFailure =
  | "timeout"
  | "unreachable"
  | "dns_failed"
  | "certificate_invalid"
  | "proxy_failed"
  | "connection_lost"
  | "answer_too_large";

/** What a reply to an acknowledgment means for it (the table in docs/architecture.md). */
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
      /** `slow`: the key is wrong, not the acknowledgment, so an early retry doesn't help. */
      readonly pace: "scheduled" | "slow";
      readonly retryAfterMs: number | undefined;
      readonly code: AttemptCode;
    }
  /** There was no answer, and the provider may have received the attempt. It is tried again (invariant 4). */
  | { readonly kind: "ambiguous"; readonly code: AttemptCode }
  | { readonly kind: "refused"; readonly code: AttemptCode }
  | { readonly kind: "dead"; readonly reason: DeadReason; readonly code: AttemptCode };

/** Why an acknowledgment became a dead letter. The set is bounded, because it labels metrics. */
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

/** Each reason in words, for operators. */
export const DEAD_REASON_TEXTS: Readonly<Record<DeadReason, string>> = {
  exhausted: "The service could not be reached, or gave no usable answer, until the age limit.",
  http_400: "The service can't read this acknowledgment.",
  http_404: "The service doesn't know this ad response.",
  http_413: "The acknowledgment is larger than the service accepts.",
  http_422: "The service finds a fault in this acknowledgment.",
  http_4xx: "The service refuses this request, with a status that says nothing more about it.",
  redirected: "The service answers with a redirect, which is never followed: check its address.",
  payload_lost: "The text is no longer in Redis, so there is nothing left to deliver.",
};

/** Short stable name of an attempt's outcome: `ok`, `http_503`, `timeout` … */
type AttemptCode = string;

/** Classifies one reply. Total: every status and every failure has a class. */
export function classifyDelivery(reply: ProviderReply, nowMs: number): DeliveryOutcome {
  if (reply.kind === "failed") {
    return reply.stage === "after_send"
      ? { kind: "ambiguous", code: reply.code }
      : { kind: "retry", pace: "scheduled", retryAfterMs: undefined, code: reply.code };
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

/** A 409: an earlier attempt arrived (invariant 4). Our own ad server adds how it ended; other providers need not. */
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

/** Only a short token is kept, because free text or a long number may repeat a user's text (invariant 6). */
const TOKEN = /^(?!.*\d{12})[A-Za-z0-9_.-]{1,64}$/;

/** The provider's own code for what was wrong: `code` of its problem body, if that is a plain token. */
export function publicErrorOf(reply: ProviderReply): string | undefined {
  if (reply.kind !== "answered" || typeof reply.body !== "object" || reply.body === null) {
    return undefined;
  }
  const { code }: { code?: unknown } = reply.body;
  return typeof code === "string" && TOKEN.test(code) ? code : undefined;
}

/** A provider can't delay us for longer than this, because acknowledgments have an age limit. */
export const RETRY_AFTER_MAX_MS = 3_600_000;

/** The only date form that senders may use (RFC 9110, section 5.6.7). */
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * Milliseconds to wait by a Retry-After header, in either form (RFC 9110, section 10.2.3): seconds, or a
 * date. At most RETRY_AFTER_MAX_MS; undefined if it can't be parsed.
 *
 * @param nowMs the caller's clock, milliseconds since 1970
 */
export function parseRetryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  const text = header?.trim() ?? "";
  if (/^\d+$/.test(text)) {
    return Math.min(Number(text) * 1000, RETRY_AFTER_MAX_MS);
  }
  const atMs = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(atMs) ? undefined : Math.min(Math.max(atMs - nowMs, 0), RETRY_AFTER_MAX_MS);
}

/** What one attempt says about its provider, as opposed to its acknowledgment. */
export type ProviderHealth =
  | { readonly kind: "healthy" }
  /** A failure that may be the provider's. Only many of them show that it is down. */
  | { readonly kind: "failing"; readonly holdMs: number }
  /** `isCertain`: 401 is about the key (RFC 9110, section 15.5.2); 403 may be about this acknowledgment only. */
  | { readonly kind: "refusing"; readonly isCertain: boolean }
  /** The provider asked for a pause. */
  | { readonly kind: "throttled"; readonly holdMs: number };

/** The longest time for which one answer can pause a whole account. Its own acknowledgment may wait longer. */
export const HOLD_MAX_MS = 300_000;

/**
 * Judges the provider by one attempt. An answer about the acknowledgment (delivered, refused, 4xx,
 * recoverable_error) shows that the provider works.
 */
export function judgeProvider(outcome: DeliveryOutcome): ProviderHealth {
  if (outcome.kind === "ambiguous") {
    return { kind: "failing", holdMs: 0 };
  }
  if (outcome.kind !== "retry" || outcome.code === "recoverable_error") {
    return { kind: "healthy" };
  }
  const holdMs = Math.min(outcome.retryAfterMs ?? 0, HOLD_MAX_MS);
  if (outcome.pace === "slow") {
    return { kind: "refusing", isCertain: outcome.code === "http_401" };
  }
  return outcome.code === "http_429" && holdMs > 0
    ? { kind: "throttled", holdMs }
    : { kind: "failing", holdMs };
}
