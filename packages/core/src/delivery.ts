/** Providers' replies, and what a reply to an acknowledgment means for it. */
import {
  adAckIdSchema,
  faultsOf,
  faultText,
  isLowerCaseUuid,
  parseAcknowledgmentAnswer,
  type Verdict,
  verdictSchema,
} from "@adrelay/contract";

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
      /** The body parsed as JSON: null if it is declared as JSON and empty, undefined if it isn't JSON. */
      readonly body: unknown;
      /** The body isn't empty, and isn't JSON. Undefined means no. */
      readonly isPage?: boolean;
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
  | "answer_too_large"
  /** This process had no room for the answer. */
  | "overloaded";

/** The acknowledgment is tried again. */
interface RetryOutcome {
  readonly kind: "retry";
  /** `slow`: an early retry doesn't help. */
  readonly pace: "scheduled" | "slow";
  readonly retryAfterMs: number | undefined;
  /**
   * What the failure is about, as far as one attempt can tell. `acknowledgment`: others may get through. Only if all of them
   * meet it, it is about the account.
   */
  readonly blame: "provider" | "key" | "acknowledgment";
  /** Why it is a dead letter if this is still so at the age limit. */
  readonly diesAs: AgeReason;
  readonly code: AttemptCode;
  /** What is missing or wrong in the answer, without its values. */
  readonly answerFault?: string;
}

/** What a reply to an acknowledgment means for it (the table in docs/architecture.md). */
export type DeliveryOutcome =
  | {
      readonly kind: "delivered";
      /** Undefined after a 409 that doesn't say how the first acknowledgment ended. */
      readonly verdict: Verdict | undefined;
      readonly providerAckId: string | undefined;
      readonly code: AttemptCode;
    }
  | RetryOutcome
  /** There was no answer, and the provider may have received the attempt. It is tried again (invariant 4). */
  | { readonly kind: "ambiguous"; readonly code: AttemptCode }
  | { readonly kind: "refused"; readonly code: AttemptCode }
  | { readonly kind: "dead"; readonly reason: DeadReason; readonly code: AttemptCode };

/** Why an acknowledgment became a dead letter. The set is bounded, because it labels metrics. */
export const DEAD_REASONS = [
  "exhausted",
  "blocked",
  "forbidden",
  "http_400",
  "http_404",
  "http_413",
  "http_422",
  "http_4xx",
  "redirected",
  "payload_lost",
] as const;
export type DeadReason = (typeof DEAD_REASONS)[number];

/** Reasons for which an acknowledgment dies at the age limit. */
export type AgeReason = Extract<DeadReason, "exhausted" | "blocked" | "forbidden">;

/** Each reason in words, for operators. */
export const DEAD_REASON_TEXTS: Readonly<Record<DeadReason, string>> = {
  exhausted: "The service could not be reached, or gave no usable answer, until the age limit.",
  blocked: "A proxy or firewall before the service turned this acknowledgment away until the age limit.",
  forbidden: "The service refused this acknowledgment with 403 until the age limit, and accepted others.",
  http_400: "The service can't read this acknowledgment.",
  http_404: "The service doesn't know this ad response.",
  http_413: "The acknowledgment is larger than the service accepts.",
  http_422: "The service finds a fault in this acknowledgment.",
  http_4xx: "The service refuses this request, with a status that says nothing more about it.",
  // Only entries of earlier versions have this reason.
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
      : retry("provider", { code: reply.code });
  }
  const { status } = reply;
  if (status >= 200 && status < 300) {
    return classifySuccess(reply.body);
  }
  const code = `http_${status}`;
  // A page with a status that would be the end comes from the edge: some firewalls answer 406, some networks 409.
  if ((status === 406 || status === 409) && reply.isPage === true) {
    return classifyEdge(reply);
  }
  if (status === 406) {
    return { kind: "refused", code };
  }
  if (status === 409) {
    return deliveredBefore(reply.body);
  }
  if (status >= 500 || status === 408 || status === 425 || status === 429) {
    return retry("provider", { code, retryAfterMs: parseRetryAfterMs(reply.retryAfter, nowMs) });
  }
  if (status === 401) {
    return retry("key", { code, pace: "slow" });
  }
  if (status < 400 || !isServiceForm(reply.body)) {
    return classifyEdge(reply);
  }
  if (status === 403) {
    return KEY_CODE.test(publicErrorOf(reply) ?? "")
      ? retry("key", { code, pace: "slow" })
      : retry("acknowledgment", { code, pace: "slow", diesAs: "forbidden" });
  }
  return { kind: "dead", reason: deadReason(status), code };
}

function retry(
  blame: RetryOutcome["blame"],
  { code, ...others }: Pick<RetryOutcome, "code"> & Partial<RetryOutcome>,
): RetryOutcome {
  return {
    kind: "retry",
    pace: "scheduled",
    retryAfterMs: undefined,
    blame,
    diesAs: "exhausted",
    code,
    ...others,
  };
}

/** API gateways answer for a service that is away with these members and no others. */
const EDGE_MEMBERS: ReadonlySet<string> = new Set(["message", "request_id", "requestId"]);
/** Codes of a service's 403 that are about the key: `key_revoked`, `InvalidApiKey`, but not `idempotency_key_reused`. */
const KEY_CODE = /^(?!.*idempoten).*(unauth|api[_.-]?key|credential|(^|[_.-])key([_.-]|$))/i;

/**
 * Whether the service itself wrote an error's body. The interface doesn't define it, so a JSON object counts, and so does an
 * empty body that is declared as JSON. A page, a text, a redirect, or an API gateway's `{"message": …}` comes from the
 * edge: a proxy, a balancer or a firewall before the service.
 */
export function isServiceForm(body: unknown): boolean {
  if (body === null) {
    return true;
  }
  if (typeof body !== "object" || Array.isArray(body)) {
    return false;
  }
  const members = Object.keys(body);
  return members.length === 0 || !members.every((member) => EDGE_MEMBERS.has(member));
}

/**
 * An answer of the edge says nothing about the acknowledgment's fate, so it is never its end. A 404, a 409 or a redirect is
 * what the edge answers while the service is away. Other refusals, above all 403, are about what this acknowledgment contains.
 */
function classifyEdge({ status, body }: { readonly status: number; readonly body: unknown }): RetryOutcome {
  const answerFault = status < 400 ? undefined : edgeFormFault(body);
  const said = { code: `edge_${status}`, ...(answerFault === undefined ? {} : { answerFault }) };
  return status < 400 || status === 404 || status === 409
    ? retry("provider", { ...said, diesAs: "blocked" })
    : retry("acknowledgment", { ...said, pace: "slow", diesAs: "blocked" });
}

/**
 * Why an error's JSON object counts as the edge's, for those who wrote it in their service. Undefined if it is the
 * service's, or no object.
 */
export function edgeFormFault(body: unknown): string | undefined {
  if (typeof body !== "object" || body === null || Array.isArray(body) || isServiceForm(body)) {
    return undefined;
  }
  return `an object with only ${Object.keys(body).join(" and ")} counts as a proxy's: add code`;
}

function classifySuccess(body: unknown): DeliveryOutcome {
  const answer = parseAcknowledgmentAnswer(body);
  if (!answer.success) {
    const answerFault = faultText(faultsOf(answer.error));
    return retry("provider", { code: "malformed_answer", answerFault });
  }
  const { status, ad_ack_id } = answer.data;
  return status === "recoverable_error"
    ? retry("acknowledgment", { code: status })
    : { kind: "delivered", verdict: status, providerAckId: knownAckId(ad_ack_id), code: status };
}

/** Other ids than UUIDs are not kept: they may repeat what a user wrote (invariant 6). */
function knownAckId(id: unknown): string | undefined {
  return isLowerCaseUuid(id) ? id : adAckIdSchema.safeParse(id).data;
}

/** A 409: an earlier attempt arrived (invariant 4). Our own ad server adds how it ended; other providers need not. */
function deliveredBefore(body: unknown): DeliveryOutcome {
  const fields: Record<string, unknown> = typeof body === "object" && body !== null ? { ...body } : {};
  return {
    kind: "delivered",
    verdict: verdictSchema.safeParse(fields["acknowledgment_status"]).data,
    providerAckId: knownAckId(fields["ad_ack_id"]),
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
      return "http_4xx";
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
