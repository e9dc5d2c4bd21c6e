/**
 * The error catalogue: every `code` that a problem answer can carry.
 * Codes are stable: they are never renamed and never reused for something else.
 */

/** Whether the same request can succeed when it is sent again: `after` means once Retry-After has passed. */
export type Retryable = "yes" | "no" | "after";

/** One row of the catalogue. `title` is for callers; it holds nothing of the request. */
export interface ErrorEntry {
  readonly status: number;
  readonly retryable: Retryable;
  readonly title: string;
}

export const ERROR_CATALOGUE = {
  bad_request: { status: 400, retryable: "no", title: "The request can't be read as HTTP" },
  invalid_json: { status: 400, retryable: "no", title: "The body is not valid JSON in UTF-8" },
  unauthenticated: { status: 401, retryable: "no", title: "No valid API key was sent" },
  key_revoked: { status: 403, retryable: "no", title: "The API key has been revoked" },
  other_publisher: { status: 403, retryable: "no", title: "The ad response belongs to another publisher" },
  not_found: { status: 404, retryable: "no", title: "There is nothing at this address" },
  unknown_ad_response: { status: 404, retryable: "no", title: "No ad response is known by this id" },
  unknown_replay: { status: 404, retryable: "no", title: "No bulk replay is known by this id" },
  method_not_allowed: { status: 405, retryable: "no", title: "This address does not take that method" },
  not_acknowledgeable: { status: 406, retryable: "no", title: "This ad response cannot be acknowledged" },
  acknowledgment_conflict: {
    status: 409,
    retryable: "no",
    title: "The ad response was acknowledged with another text",
  },
  already_acknowledged: { status: 409, retryable: "no", title: "The ad response was acknowledged before" },
  not_dead: { status: 409, retryable: "no", title: "The acknowledgment is not a dead letter" },
  replay_ended: { status: 409, retryable: "no", title: "The bulk replay has ended" },
  payload_too_large: { status: 413, retryable: "no", title: "The body is larger than the limit" },
  unsupported_media_type: {
    status: 415,
    retryable: "no",
    title: "The body must be application/json in UTF-8",
  },
  validation_failed: { status: 422, retryable: "no", title: "The request does not have the required form" },
  rate_limited: { status: 429, retryable: "after", title: "Too many requests" },
  internal_error: { status: 500, retryable: "yes", title: "Something went wrong on our side" },
  provider_unavailable: { status: 502, retryable: "yes", title: "The ad service gave no usable answer" },
  queue_unavailable: { status: 503, retryable: "after", title: "Acknowledgments cannot be stored right now" },
  storage_unavailable: {
    status: 503,
    retryable: "after",
    title: "The ad server can't reach its storage right now",
  },
  provider_timeout: { status: 504, retryable: "yes", title: "The ad service did not answer in time" },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERROR_CATALOGUE;
