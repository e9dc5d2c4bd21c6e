import {
  ERROR_CATALOGUE,
  type ErrorCode,
  makeProblem,
  PROBLEM_CONTENT_TYPE,
  type ProblemDetails,
} from "@adrelay/contract";
import type { ErrorRequestHandler, Request, RequestHandler, Response } from "express";
import type { Logger } from "pino";
import { requestIdOf } from "./request-id.ts";

/** Sends an error answer of the catalogue. */
export function sendProblem(response: Response, code: ErrorCode, details: ProblemDetails = {}): void {
  response
    .status(ERROR_CATALOGUE[code].status)
    .type(PROBLEM_CONTENT_TYPE)
    .send(JSON.stringify(makeProblem(code, requestIdOf(response), details)));
}

/** Last route: nothing is served here. */
export const notFound: RequestHandler = (_request: Request, response: Response) => {
  sendProblem(response, "not_found");
};

/** Last handler of a route: the address exists, the method doesn't. */
export function methodNotAllowed(...allowed: string[]): RequestHandler {
  return (_request, response) => {
    response.set("Allow", allowed.join(", "));
    sendProblem(response, "method_not_allowed");
  };
}

/**
 * The one place where something thrown becomes an answer. Faults of the request (as body-parser and the
 * router raise them) are the caller's; everything else is ours, logged whole and answered without detail.
 */
export function answerErrors(log: Logger): ErrorRequestHandler {
  return (error: unknown, request, response, next) => {
    if (response.headersSent) {
      next(error);
      return;
    }
    const fault = callersFault(error);
    if (fault !== undefined) {
      sendProblem(response, fault);
      return;
    }
    log.error({
      event: "request_failed",
      request_id: requestIdOf(response),
      method: request.method,
      err: error,
    });
    sendProblem(response, "internal_error");
  };
}

function callersFault(error: unknown): ErrorCode | undefined {
  if (!(error instanceof Error)) {
    return undefined;
  }
  const status = "status" in error && typeof error.status === "number" ? error.status : undefined;
  switch (status) {
    case 413:
      return "payload_too_large";
    case 415:
      return "unsupported_media_type";
    default:
      return status !== undefined && status >= 400 && status < 500 ? "bad_request" : undefined;
  }
}
