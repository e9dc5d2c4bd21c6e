/** Answers of the proxy itself: errors in the dialect's form, so that callers' SDKs understand them. */
import type { ServerResponse } from "node:http";
import { makeProblem, PROBLEM_CONTENT_TYPE, REQUEST_ID_HEADER } from "@adrelay/contract";
import type { Dialect, ErrorBody } from "../dialects/dialect.ts";

/** What the proxy answers by itself. */
export const OWN_ERRORS = {
  unauthenticated: {
    status: 401,
    code: "invalid_api_key",
    message: "Adrelay: send a valid key of the publisher in",
  },
  slow_body: {
    status: 408,
    code: "request_timeout",
    message: "Adrelay: the rest of the request didn't come in time",
  },
  upgrade: {
    status: 501,
    code: "upgrade_not_supported",
    message: "Adrelay: connections can't be upgraded here",
  },
  unreachable: {
    status: 502,
    code: "model_unreachable",
    message: "Adrelay: the model's server can't be reached",
  },
  lost: {
    status: 502,
    code: "model_lost",
    message: "Adrelay: the connection to the model's server was lost",
  },
  overloaded: {
    status: 503,
    code: "overloaded",
    message: "Adrelay: this proxy has no room for another call",
  },
  timeout: {
    status: 504,
    code: "model_timeout",
    message: "Adrelay: the model's server sent nothing in time",
  },
} as const satisfies Record<string, ErrorBody>;

const RETRY_AFTER_SECONDS = "1";

export interface OwnError {
  readonly dialect: Dialect;
  readonly error: ErrorBody;
  readonly requestId: string;
  /** Further headers: names and values in turn. */
  readonly headers?: readonly string[];
}

/** Sends an error in the dialect's form. Nothing may have been sent before. */
export function sendOwnError(
  response: ServerResponse,
  { dialect, error, requestId, headers = [] }: OwnError,
): void {
  const body = Buffer.from(dialect.formatError(error));
  const retry = error.status === 503 ? ["Retry-After", RETRY_AFTER_SECONDS] : [];
  response
    .writeHead(error.status, [
      "Content-Type",
      "application/json",
      "Content-Length",
      String(body.length),
      "Cache-Control",
      "no-store",
      REQUEST_ID_HEADER,
      requestId,
      ...retry,
      ...headers,
    ])
    .end(body);
}

/** Outside of /v1/ no dialect is spoken. */
export function sendNotFound(response: ServerResponse, requestId: string): void {
  const problem = makeProblem("not_found", requestId, {
    detail: "call a path below /v1/, without dot segments",
  });
  response
    .writeHead(problem.status, [
      "Content-Type",
      PROBLEM_CONTENT_TYPE,
      "Cache-Control",
      "no-store",
      REQUEST_ID_HEADER,
      requestId,
    ])
    .end(JSON.stringify(problem));
}
