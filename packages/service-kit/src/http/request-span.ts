import { parseTraceContext, TRACEPARENT_HEADER, TRACESTATE_HEADER } from "@adrelay/contract";
import type { RequestHandler, Response } from "express";
import { passingSpan, type Span, type Tracing } from "../tracing/tracing.ts";

const SPANS = new WeakMap<Response, Span>();

/** Opens the span of a request, within its caller's trace if it names one. Whoever reports the request ends it. */
export function openRequestSpan(tracing: Tracing): RequestHandler {
  return (request, response, next) => {
    const span = tracing.startSpan({
      name: request.method,
      kind: "server",
      parent: parseTraceContext(request.get(TRACEPARENT_HEADER), request.get(TRACESTATE_HEADER)),
      attributes: { "http.request.method": request.method },
    });
    SPANS.set(response, span);
    next();
  };
}

/** The span of the request of this response. */
export function requestSpanOf(response: Response): Span {
  return SPANS.get(response) ?? passingSpan(undefined);
}
