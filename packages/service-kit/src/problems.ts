import {
  ERROR_CATALOGUE,
  type ErrorCode,
  makeProblem,
  PROBLEM_CONTENT_TYPE,
  type ProblemDetails,
} from "@adrelay/contract";
import type { ErrorRequestHandler, Request, RequestHandler, Response } from "express";
import type { Logger } from "pino";
import { z } from "zod";
import { requestIdOf } from "./request-context.ts";

/** Sends an error of the catalogue as problem+json. */
export function sendProblem(response: Response, code: ErrorCode, details: ProblemDetails = {}): void {
  response
    .status(ERROR_CATALOGUE[code].status)
    .type(PROBLEM_CONTENT_TYPE)
    .send(JSON.stringify(makeProblem(code, requestIdOf(response), details)));
}

/** The last handler of an app: nothing is served at this path. */
export const notFound: RequestHandler = (_request: Request, response: Response) => {
  sendProblem(response, "not_found");
};

/** The last handler of a route: the path exists, but not with this method. */
export function methodNotAllowed(...allowed: string[]): RequestHandler {
  return (_request, response) => {
    response.set("Allow", allowed.join(", "));
    sendProblem(response, "method_not_allowed");
  };
}

/**
 * The only place where an error that was thrown becomes an answer. An error with a 4xx status (body-parser and the
 * router throw these) is the caller's fault. Any other error is ours: it is logged in full and answered without detail.
 */
export function answerErrors(log: Logger): ErrorRequestHandler {
  return (error: unknown, request, response, next) => {
    if (response.headersSent) {
      next(error);
      return;
    }
    const fault = callersFault(error);
    if (fault !== undefined) {
      sendProblem(response, fault.code, { detail: fault.detail });
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

/** Describes what body-parser or the router refused. Their own messages are not in the answer. */
function callersFault(error: unknown): { code: ErrorCode; detail: string } | undefined {
  const { status, limit } = faultSchema.safeParse(error).data ?? {};
  switch (status) {
    case undefined:
      return undefined;
    case 413:
      return {
        code: "payload_too_large",
        detail: `a body may have ${limit ?? "no more than the limit of"} bytes`,
      };
    case 415:
      return {
        code: "unsupported_media_type",
        detail: "the Content-Encoding is none of gzip, deflate, br, zstd, identity",
      };
    default:
      return {
        code: "bad_request",
        // The router throws a URIError. The errors of a decompressor have no common type.
        detail: error instanceof URIError ? "the path is malformed" : "the body can't be read as it was sent",
      };
  }
}

const faultSchema = z.object({
  status: z.number().min(400).max(499),
  limit: z.number().optional(),
});
