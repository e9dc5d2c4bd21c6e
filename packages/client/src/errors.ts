/** The errors of this package. Most are values in results; only wrong options are thrown. */

/**
 * A code of the relay's problems: docs/errors.md lists them. A test holds them equal to the relay's catalogue. A newer relay may
 * send another one.
 */
export type ProblemCode =
  | "bad_request"
  | "invalid_json"
  | "unauthenticated"
  | "key_revoked"
  | "forbidden"
  | "other_publisher"
  | "not_found"
  | "unknown_ad_response"
  | "unknown_replay"
  | "unknown_discard"
  | "method_not_allowed"
  | "not_acknowledgeable"
  | "request_timeout"
  | "acknowledgment_conflict"
  | "already_acknowledged"
  | "not_dead"
  | "attempt_under_way"
  | "replay_ended"
  | "discard_ended"
  | "payload_too_large"
  | "unsupported_media_type"
  | "host_not_allowed"
  | "validation_failed"
  | "rate_limited"
  | "too_many_logins"
  | "headers_too_large"
  | "internal_error"
  | "provider_unavailable"
  | "queue_unavailable"
  | "storage_full"
  | "overloaded"
  | "storage_unavailable"
  | "provider_timeout";

/** What can go wrong on the client's side. Like problem codes, these are never renamed. */
export type ClientErrorCode =
  /** The caller's AbortSignal fired. */
  | "aborted"
  | "timeout"
  /** No answer: no connection, or it broke. */
  | "unreachable"
  /** An answer that isn't the relay's, such as a page of a proxy. */
  | "unexpected_answer"
  /** The request can't be written as JSON. */
  | "unsendable"
  | "outbox_full"
  | "outbox_failed"
  /** The acknowledgment is older than `giveUpAfterMs`. */
  | "gave_up"
  | "closed"
  | "invalid_options";

interface ErrorDetails {
  readonly cause?: unknown;
  /** The HTTP status, if there was an answer. */
  readonly status?: number;
}

/** Any error of this package. Decide by `code`, never by the message. */
export class RelayError extends Error {
  override readonly name: string = "RelayError";
  declare readonly code: ProblemCode | ClientErrorCode;
  declare readonly status: number | undefined;

  constructor(code: ProblemCode | ClientErrorCode, message: string, { cause, status }: ErrorDetails = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status;
  }
}

/** The error of a wait that took too long. */
export function overdue(who: "relay" | "outbox", limitMs: number): RelayError {
  return new RelayError("timeout", `the ${who} gave no answer within ${limitMs} ms`);
}

/** A problem that the relay answered. */
export class RelayProblemError extends RelayError {
  override readonly name = "RelayProblemError";
  declare readonly code: ProblemCode;
  declare readonly status: number;
  /** The relay's logs name the request by it. */
  declare readonly requestId: string;
  /** The faults of a request, each with its path, for `validation_failed`. */
  declare readonly faults: readonly { readonly path: string; readonly message: string }[];

  constructor(problem: {
    readonly code: ProblemCode;
    readonly status: number;
    readonly message: string;
    readonly requestId: string;
    readonly faults: RelayProblemError["faults"];
  }) {
    super(problem.code, problem.message, problem);
    this.requestId = problem.requestId;
    this.faults = problem.faults;
  }
}
