import { parseTraceContext, TRACEPARENT_HEADER, TRACESTATE_HEADER } from "@adrelay/contract";
import type { Request, Response } from "express";
import type { Span, Tracing } from "../tracing/tracing.ts";
import { headerOf } from "./header-of.ts";
import { recordOf } from "./request-record.ts";

/** Opens the span of a request, within its caller's trace if it names one. Whoever reports the request ends it. */
export function openRequestSpan(tracing: Tracing, request: Request, response: Response): void {
  recordOf(response).span = tracing.startSpan({
    name: request.method,
    kind: "server",
    parent: parseTraceContext(headerOf(request, TRACEPARENT_HEADER), headerOf(request, TRACESTATE_HEADER)),
    attributes: { "http.request.method": request.method },
  });
}

/** The span of the request of this response. */
export function requestSpanOf(response: Response): Span {
  return recordOf(response).span;
}
