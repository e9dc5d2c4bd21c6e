/** JSON over HTTP: how bodies of requests are parsed, and how errors are answered as problem+json. */
import {
  ERROR_CATALOGUE,
  type ErrorCode,
  isJsonWithinLimits,
  JSON_DEPTH_MAX,
  JSON_VALUES_MAX,
  makeProblem,
  PROBLEM_CONTENT_TYPE,
  type ProblemDetails,
} from "@adrelay/contract";
import { parse as parseContentType } from "content-type";
import type { ErrorRequestHandler, Request, RequestHandler, Response } from "express";
import type { Logger } from "pino";
import { z } from "zod";
import { headerOf, requestIdOf } from "../http-app.ts";
import type { ReadBody } from "../read-body.ts";

/** A JSON object whose members are not checked yet. */
export type JsonObject = Record<string, unknown>;

/** A body as JSON, or the code and text of the answer that refuses it. */
type BodyResult =
  | ({ readonly kind: "ok" } & JsonBody)
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly detail: string };

/** Says why a Content-Type is refused, before the body is read; undefined if it declares JSON in UTF-8. */
export function refusedMediaType(contentType: string | undefined): string | undefined {
  if (contentType === "application/json") {
    return undefined;
  }
  if (contentType === undefined) {
    return "Content-Type is missing; send application/json";
  }
  const { type, parameters } = parseContentType(contentType);
  if (!/^application\/([\w.-]+\+)?json$/.test(type)) {
    return "Content-Type must be application/json";
  }
  const charset = parameters?.["charset"]?.toLowerCase() ?? "utf-8";
  return charset === "utf-8" || charset === "utf8" ? undefined : "the charset of JSON is UTF-8";
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const TOO_COMPLEX = `a body may be nested at most ${JSON_DEPTH_MAX} deep and have at most ${JSON_VALUES_MAX} values`;

/** Parses a body that `readBody` has read; `bytes` and `text` are exactly what was sent. */
export function parseJsonObject(request: Request): BodyResult {
  const body: unknown = request.body;
  if (!Buffer.isBuffer(body) || body.length === 0) {
    return { kind: "refused", code: "invalid_json", detail: "the body is empty" };
  }
  if (!isJsonWithinLimits(body)) {
    return { kind: "refused", code: "invalid_json", detail: TOO_COMPLEX };
  }
  try {
    const text = UTF8.decode(body);
    const value: unknown = JSON.parse(text);
    return isObject(value)
      ? { kind: "ok", bytes: body, text, value }
      : { kind: "refused", code: "validation_failed", detail: "the body must be a JSON object" };
  } catch {
    // The parser's message is not in the answer, because it quotes the user's text.
    return { kind: "refused", code: "invalid_json", detail: "the body is not valid JSON in UTF-8" };
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A request's body that is a JSON object: as bytes, as text, and parsed. */
export interface JsonBody {
  readonly bytes: Buffer;
  readonly text: string;
  readonly value: JsonObject;
}

/**
 * Reads a JSON body, after a check of its media type; undefined if a refusal was sent, or if `hold` refused it. Only the
 * result has the body, the request no longer.
 */
export async function readJson(
  readBody: ReadBody,
  request: Request,
  response: Response,
  hold?: (bytes: number) => boolean,
): Promise<JsonBody | undefined> {
  const refusedType = refusedMediaType(headerOf(request, "content-type"));
  if (refusedType !== undefined) {
    sendProblem(response, "unsupported_media_type", { detail: refusedType });
    return undefined;
  }
  if ((await readBody(request, response, hold)) === "not_held") {
    return undefined;
  }
  const body = parseJsonObject(request);
  request.body = undefined;
  if (body.kind === "refused") {
    sendProblem(response, body.code, { detail: body.detail });
    return undefined;
  }
  return body;
}

const JSON_TYPE = "application/json; charset=utf-8";

/** Sends a JSON text. Express' methods would look up settings for escapes, ETags and freshness, which we don't use. */
export function sendJson(response: Response, status: number, text: string | Buffer, type = JSON_TYPE): void {
  response.statusCode = status;
  response.setHeader("Content-Type", type);
  response.end(text);
}

/** Sends an error of the catalogue as problem+json. */
export function sendProblem(response: Response, code: ErrorCode, details: ProblemDetails = {}): void {
  response
    .status(ERROR_CATALOGUE[code].status)
    .type(PROBLEM_CONTENT_TYPE)
    .send(JSON.stringify(makeProblem(code, requestIdOf(response), details)));
}

/**
 * The last handler of an app: nothing is served at this path.
 *
 * @param detail says what can be called instead
 */
export function notFound(detail?: string): RequestHandler {
  return (_request, response) => {
    sendProblem(response, "not_found", detail === undefined ? {} : { detail });
  };
}

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
        detail:
          limit === undefined
            ? "the body is too large"
            : `a body may have at most ${limit} bytes, without the escapes of JSON`,
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
