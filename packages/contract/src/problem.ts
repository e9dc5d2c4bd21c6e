/** Error answers: the catalogue of error codes, and the problem body (RFC 9457) that carries a code. */
import { z } from "zod";

/**
 * Whether to send the same request again. `after` means: once the Retry-After time has passed. Errors that only injections get
 * have `no`, because a repeated injection may buy a second ad.
 */
type Retryable = "yes" | "no" | "after";

/** What the catalogue says about one error code. `title` is for callers and contains nothing of the request. */
export interface ErrorDefinition {
  readonly status: number;
  readonly retryable: Retryable;
  readonly title: string;
}

/**
 * The error catalogue: every `code` that one of our problem bodies can carry. Codes are stable: a code is never
 * renamed, and a retired code is never used again for another error.
 */
export const ERROR_CATALOGUE = {
  bad_request: { status: 400, retryable: "no", title: "The request is not valid HTTP" },
  invalid_json: { status: 400, retryable: "no", title: "The body can't be read as JSON in UTF-8" },
  unauthenticated: { status: 401, retryable: "no", title: "No valid API key was sent" },
  key_revoked: { status: 403, retryable: "no", title: "The API key has been revoked" },
  forbidden: { status: 403, retryable: "no", title: "Your token doesn't allow this" },
  other_publisher: { status: 403, retryable: "no", title: "The ad response belongs to another publisher" },
  not_found: { status: 404, retryable: "no", title: "There is nothing at this address" },
  unknown_ad_response: { status: 404, retryable: "no", title: "There is no ad response with this id" },
  unknown_replay: { status: 404, retryable: "no", title: "There is no bulk replay with this id" },
  unknown_discard: { status: 404, retryable: "no", title: "There is no bulk discard with this id" },
  method_not_allowed: { status: 405, retryable: "no", title: "This address does not allow this method" },
  not_acknowledgeable: { status: 406, retryable: "no", title: "This ad response can't be acknowledged" },
  request_timeout: { status: 408, retryable: "yes", title: "The request did not arrive in time" },
  acknowledgment_conflict: {
    status: 409,
    retryable: "no",
    title: "The ad response was acknowledged with another text",
  },
  already_acknowledged: { status: 409, retryable: "no", title: "The ad response was already acknowledged" },
  not_dead: { status: 409, retryable: "no", title: "The acknowledgment is not a dead letter" },
  attempt_under_way: {
    status: 409,
    retryable: "after",
    title: "An attempt to deliver the acknowledgment is under way",
  },
  replay_ended: { status: 409, retryable: "no", title: "The bulk replay has ended" },
  discard_ended: { status: 409, retryable: "no", title: "The bulk discard has ended" },
  payload_too_large: { status: 413, retryable: "no", title: "The body is larger than the limit" },
  unsupported_media_type: {
    status: 415,
    retryable: "no",
    title: "The body must be application/json in UTF-8",
  },
  host_not_allowed: {
    status: 421,
    retryable: "no",
    title: "This listener doesn't serve the host of the request",
  },
  validation_failed: { status: 422, retryable: "no", title: "A part of the request is missing or invalid" },
  rate_limited: { status: 429, retryable: "after", title: "Too many requests" },
  too_many_logins: {
    status: 429,
    retryable: "after",
    title: "Too many refused tokens came from your address",
  },
  headers_too_large: { status: 431, retryable: "no", title: "The headers are larger than the limit" },
  internal_error: { status: 500, retryable: "yes", title: "Something went wrong on our side" },
  provider_unavailable: { status: 502, retryable: "no", title: "The ad service gave no usable answer" },
  queue_unavailable: {
    status: 503,
    retryable: "after",
    title: "The relay can't reach its storage right now",
  },
  overloaded: { status: 503, retryable: "after", title: "There is no room for this request right now" },
  storage_full: {
    status: 503,
    retryable: "after",
    title: "The relay's storage has no room for this right now",
  },
  storage_unavailable: {
    status: 503,
    retryable: "after",
    title: "The ad server can't reach its storage right now",
  },
  provider_timeout: { status: 504, retryable: "no", title: "The ad service did not answer in time" },
} as const satisfies Record<string, ErrorDefinition>;

/** A code of the error catalogue. */
export type ErrorCode = keyof typeof ERROR_CATALOGUE;

/** Content type of a problem body. */
export const PROBLEM_CONTENT_TYPE = "application/problem+json";

const fieldFaultSchema = z.object({ path: z.string(), message: z.string() });
/** One fault in a request. `path` is dotted (`request_context.user_ip`), and empty for the body as a whole. */
export type FieldFault = z.infer<typeof fieldFaultSchema>;

/** The body of an error answer (RFC 9457). Unknown members are kept, because other services may send more. */
export const problemSchema = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.number().int(),
  detail: z.string().optional(),
  code: z.string(),
  request_id: z.string(),
  errors: z.array(fieldFaultSchema).optional(),
});
/** A checked problem body. */
export type Problem = z.infer<typeof problemSchema>;

/** What a problem body can contain besides the code's definition and the request id. */
export interface ProblemDetails {
  readonly detail?: string;
  readonly errors?: readonly FieldFault[];
  /** Members that we add to those of the RFC (RFC 9457, section 3.2). */
  readonly extensions?: Readonly<Record<string, string | number>>;
}

/** Builds the body of an error answer from the catalogue. */
export function makeProblem(code: ErrorCode, requestId: string, details: ProblemDetails = {}): Problem {
  const { status, title } = ERROR_CATALOGUE[code];
  return {
    type: `urn:adrelay:error:${code}`,
    title,
    status,
    ...(details.detail === undefined ? {} : { detail: details.detail }),
    code,
    request_id: requestId,
    ...(details.errors === undefined ? {} : { errors: [...details.errors] }),
    ...details.extensions,
  };
}

/** Turns zod's issues into field faults, in the order in which zod found them. */
export function faultsOf(error: z.ZodError): FieldFault[] {
  return error.issues.map((issue) => ({ path: issue.path.map(String).join("."), message: messageOf(issue) }));
}

/** Faults in one line, each with its path; `body` is the body as a whole. It repeats no value. */
export function faultText(faults: readonly FieldFault[]): string {
  return faults
    .map(({ path, message }) => (path && message.startsWith(path) ? message : `${path || "body"} ${message}`))
    .join("; ");
}

/** The form of a member's name. A key in another form may be a user's text, which no answer repeats (invariant 6). */
const MEMBER_NAME = /^[a-z_]{1,32}$/;

function messageOf(issue: z.core.$ZodIssue): string {
  const isPlain = issue.code !== "unrecognized_keys" || issue.keys.every((key) => MEMBER_NAME.test(key));
  return isPlain ? issue.message : "has members that are not known";
}
