/** The Express app of an HTTP service of ours: what it does for each request. */
import { randomUUID } from "node:crypto";
import {
  parseTraceContext,
  REQUEST_ID_HEADER,
  TRACEPARENT_HEADER,
  TRACESTATE_HEADER,
} from "@adrelay/contract";
import express, {
  type Express as ExpressApp,
  type Request,
  type RequestHandler,
  type Response,
} from "express";
import { normalizeTarget } from "./request-target.ts";
import { NO_SPAN, NO_TRACING, type Span, type Tracing } from "./tracing.ts";

/** Fields of a request's one log line. No user's text may be in them (invariant 6). */
export type RequestLogFields = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/**
 * What is kept of a request until its log line is written. It is kept on the response, because a map beside the responses
 * would be work for the garbage collector.
 */
export interface RequestContext {
  /** Empty until the request has been given one. */
  readonly requestId: string;
  readonly span: Span;
  readonly logFields: RequestLogFields;
}

interface MutableContext extends RequestContext {
  requestId: string;
  span: Span;
  readonly logFields: Record<string, RequestLogFields[string]>;
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
function openRequestContext(request: Request, response: Response, tracing: Tracing): RequestContext {
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
export function headerOf({ headers }: Pick<Request, "headers">, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "object" ? value[0] : value;
}

/** What is known of a request once its answer is sent or its caller has hung up. */
export interface FinishedRequest {
  readonly method: string;
  readonly requestId: string;
  /** The status of the answer; 499 if the caller hung up before it had one. */
  readonly status: number;
  readonly durationMs: number;
  readonly response: Response;
}

const CALLER_GONE_STATUS = 499;

/**
 * Makes an Express app with case-sensitive paths and without headers that name Express. Each request gets a plain path,
 * an id and a span, and is reported once, when it has finished.
 */
export function createApp(
  onFinished: (finished: FinishedRequest) => void,
  tracing: Tracing = NO_TRACING,
): ExpressApp {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.enable("case sensitive routing");
  // One layer for everything, because each layer costs the router time.
  app.use((request: Request, response: Response, next) => {
    const startedAtMs = performance.now();
    request.url = normalizeTarget(request.url);
    const { requestId, span } = openRequestContext(request, response, tracing);
    response.on("close", () => {
      const status = response.writableFinished ? response.statusCode : CALLER_GONE_STATUS;
      const durationMs = performance.now() - startedAtMs;
      onFinished({ method: request.method, requestId, status, durationMs, response });
      span.set({ "http.response.status_code": status, "adrelay.request_id": requestId });
      span.end({ isFault: status >= 500 });
    });
    next();
  });
  return app;
}
