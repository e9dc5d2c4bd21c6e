import { ACKNOWLEDGE_PATH, ACKNOWLEDGMENTS_PATH, INJECTION_PATH } from "@adrelay/contract";
import {
  answerErrors,
  createApp,
  type FinishedRequest,
  methodNotAllowed,
  notFound,
  readBody,
  refusedMediaType,
  sendProblem,
} from "@adrelay/service-kit";
import type { Express, RequestHandler } from "express";
import type { Logger } from "pino";
import {
  type Authenticate,
  type PublisherHandler,
  requirePublisher,
  withPublisher,
} from "./auth/authenticate.ts";
import type { GatewayMetrics } from "./metrics/gateway-metrics.ts";
import { annotate, notesOf } from "./request-notes.ts";

export interface PublicAppOptions {
  readonly authenticate: Authenticate;
  readonly bodyLimitBytes: number;
  readonly startInjection: PublisherHandler;
  readonly acknowledge: PublisherHandler;
  readonly lookUp: PublisherHandler;
  readonly metrics: GatewayMetrics;
  readonly log: Logger;
}

/** The public listener's app. Express serves each path with and without its last slash. */
export function createPublicApp(options: PublicAppOptions): Express {
  const { authenticate, bodyLimitBytes, startInjection, acknowledge, lookUp, metrics, log } = options;
  const app = createApp((finished) => reportRequest(finished, metrics, log));
  const withJson = [requirePublisher(authenticate), requireJson, readBody(bodyLimitBytes)];
  app
    .route(INJECTION_PATH)
    .all(named("start_injection"))
    .post(...withJson, withPublisher(authenticate, startInjection))
    .all(methodNotAllowed("POST"));
  app
    .route(ACKNOWLEDGE_PATH)
    .all(named("acknowledge"))
    .post(...withJson, withPublisher(authenticate, acknowledge))
    .all(methodNotAllowed("POST"));
  app
    .route(`${ACKNOWLEDGMENTS_PATH}:ad_response_id`)
    .all(named("look_up"))
    .get(requirePublisher(authenticate), withPublisher(authenticate, lookUp))
    .all(methodNotAllowed("GET", "HEAD"));
  app.use(notFound);
  app.use(answerErrors(log));
  return app;
}

function named(operation: string): RequestHandler {
  return (_request, response, next) => {
    annotate(response, { operation });
    next();
  };
}

const requireJson: RequestHandler = (request, response, next) => {
  const refused = refusedMediaType(request.get("Content-Type"));
  if (refused !== undefined) {
    sendProblem(response, "unsupported_media_type", { detail: refused });
    return;
  }
  next();
};

/** The one line and the one observation of a request. */
function reportRequest(finished: FinishedRequest, metrics: GatewayMetrics, log: Logger): void {
  const { method, requestId, status, durationMs, response } = finished;
  const notes = notesOf(response);
  const operation = notes.operation ?? "other";
  metrics.requestDuration.observe({ operation, status: String(status) }, durationMs / 1000);
  log.info({
    event: "request",
    ...notes,
    operation,
    method,
    status,
    duration_ms: Math.round(durationMs * 100) / 100,
    request_id: requestId,
  });
}
