import { ACKNOWLEDGE_PATH, ACKNOWLEDGMENTS_PATH, INJECTION_PATH } from "@adrelay/contract";
import {
  answerErrors,
  createApp,
  exemplarOf,
  type FinishedRequest,
  methodNotAllowed,
  notFound,
  type RequestLogFields,
  requestContextOf,
  requestSpanOf,
  type Span,
  type Tracing,
} from "@adrelay/service-kit";
import type { Express } from "express";
import type { Logger } from "pino";
import { type Call, type EndpointDeps, type JsonCall, makeEndpoint, makeJsonEndpoint } from "./endpoint.ts";
import type { GatewayMetrics } from "./gateway-metrics.ts";

export interface PublicAppDeps extends EndpointDeps {
  readonly startInjection: (call: JsonCall) => Promise<void>;
  readonly acknowledge: (call: JsonCall) => Promise<void>;
  readonly lookUp: (call: Call) => Promise<void>;
  readonly metrics: GatewayMetrics;
  readonly tracing: Tracing;
  readonly log: Logger;
}

/** The public listener's app. Express serves each path with and without its last slash. */
export function createPublicApp(deps: PublicAppDeps): Express {
  const app = createApp((finished) => reportRequest(deps, finished), deps.tracing);
  app
    .route(INJECTION_PATH)
    .post(makeJsonEndpoint(deps, "start_injection", deps.startInjection))
    .all(methodNotAllowed("POST"));
  app
    .route(ACKNOWLEDGE_PATH)
    .post(makeJsonEndpoint(deps, "acknowledge", deps.acknowledge))
    .all(methodNotAllowed("POST"));
  app
    .route(`${ACKNOWLEDGMENTS_PATH}:ad_response_id`)
    .get(makeEndpoint(deps, "look_up", deps.lookUp))
    .all(methodNotAllowed("GET", "HEAD"));
  app.use(notFound);
  app.use(answerErrors(deps.log));
  return app;
}

/** Writes a request's one log line, observes its duration and describes its span. */
function reportRequest({ metrics, log }: PublicAppDeps, finished: FinishedRequest): void {
  const { method, requestId, status, durationMs, response } = finished;
  const fields = requestContextOf(response).logFields;
  const operation = String(fields["operation"] ?? "other");
  const span = requestSpanOf(response);
  describeSpan(span, operation, fields);
  metrics.requestDuration.observe({
    labels: { operation, status: String(status) },
    value: durationMs / 1000,
    exemplarLabels: exemplarOf(span),
  });
  log.info({
    event: "request",
    ...fields,
    operation,
    method,
    status,
    duration_ms: Math.round(durationMs * 100) / 100,
    request_id: requestId,
    trace_id: span.context?.traceId,
  });
}

function describeSpan(
  span: Span,
  operation: string,
  { publisher, outcome, ad_response_id }: RequestLogFields,
): void {
  span.set({
    "adrelay.operation": operation,
    "adrelay.publisher": publisher,
    "adrelay.outcome": outcome,
    "adrelay.ad_response_id": ad_response_id,
  });
}
