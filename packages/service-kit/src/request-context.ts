/**
 * What is kept of a request while it runs: its id, its span, and the fields of its one log line. It is kept on the
 * response, because a map beside the responses would be work for the garbage collector.
 */
import { randomUUID } from "node:crypto";
import {
  parseTraceContext,
  REQUEST_ID_HEADER,
  TRACEPARENT_HEADER,
  TRACESTATE_HEADER,
} from "@adrelay/contract";
import type { Request, RequestHandler, Response } from "express";
import { NO_SPAN, type Span, type Tracing } from "./tracing.ts";

/** Fields of a request's one log line. No user's text may be in them (invariant 6). */
export type RequestLogFields = Readonly<Record<string, string | number>>;

/** What is kept of a request until its log line is written. */
export interface RequestContext {
  /** Empty until the request has been given one. */
  readonly requestId: string;
  readonly span: Span;
  readonly logFields: RequestLogFields;
}

interface MutableContext extends RequestContext {
  requestId: string;
  span: Span;
  readonly logFields: Record<string, string | number>;
}

declare global {
  namespace Express {
    interface Response {
      requestContext?: MutableContext;
    }
  }
}

/** The context of the request that this response answers. */
export function requestContextOf(response: Response): RequestContext {
  return contextOf(response);
}

/** The id of the request that this response answers; empty if it has none. */
export function requestIdOf(response: Response): string {
  return contextOf(response).requestId;
}

/** The span of the request that this response answers; one that records nothing if none was opened. */
export function requestSpanOf(response: Response): Span {
  return contextOf(response).span;
}

/** Adds fields to the one log line of a request. */
export function addToRequestLog(response: Response, fields: RequestLogFields): void {
  Object.assign(contextOf(response).logFields, fields);
}

/** Gives a request its id, and its span within the trace that its caller names. The caller of this ends the span. */
export function openRequestContext(request: Request, response: Response, tracing: Tracing): RequestContext {
  const context = contextOf(response);
  giveRequestId(request, response);
  context.span = tracing.startSpan({
    name: request.method,
    kind: "server",
    parent: parseTraceContext(headerOf(request, TRACEPARENT_HEADER), headerOf(request, TRACESTATE_HEADER)),
    attributes: { "http.request.method": request.method },
  });
  return context;
}

/** Gives each request an id, for an app without spans and request logs. */
export const assignRequestId: RequestHandler = (request, response, next) => {
  giveRequestId(request, response);
  next();
};

const ID_HEADER = REQUEST_ID_HEADER.toLowerCase();
const PLAIN_ID = /^[\w.:-]{1,128}$/;

/**
 * Uses the caller's id if it is a plain one, else makes one. Every answer carries it. A request that has an id keeps
 * it.
 */
function giveRequestId(request: Request, response: Response): void {
  const context = contextOf(response);
  if (context.requestId === "") {
    const given = headerOf(request, ID_HEADER);
    context.requestId = given !== undefined && PLAIN_ID.test(given) ? given : randomUUID();
    response.setHeader(REQUEST_ID_HEADER, context.requestId);
  }
}

function contextOf(response: Response): MutableContext {
  response.requestContext ??= { requestId: "", span: NO_SPAN, logFields: {} };
  return response.requestContext;
}

/** A header's first value. The name must be in lower case; Express' own `get` converts it at each call. */
export function headerOf({ headers }: Request, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "object" ? value[0] : value;
}
