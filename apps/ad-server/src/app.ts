import { ACKNOWLEDGE_PATH, INJECTION_PATH } from "@adrelay/contract";
import {
  API_DOCUMENT_PATH,
  answerErrors,
  createApp,
  type FinishedRequest,
  methodNotAllowed,
  notFound,
  type RequestLogFields,
  requestContextOf,
  serveApiDocument,
} from "@adrelay/service-kit";
import type { Express } from "express";
import type { Logger } from "pino";
import type { AdServerMetrics, OperationLabel } from "./metrics.ts";
import {
  type AcknowledgeDeps,
  acknowledgeOperation,
  LOOK_UP_PATH,
  lookUpEndpoint,
} from "./routes/acknowledgments.ts";
import { type EndpointDeps, makeEndpoint } from "./routes/endpoint.ts";
import {
  BUDGETS_PATH,
  type BudgetsDeps,
  budgetsEndpoint,
  SPEND_PATHS,
  type SpendDeps,
  spendEndpoint,
} from "./routes/reports.ts";
import { type StartDeps, startOperation } from "./routes/start.ts";
import type { ResponseStore } from "./store/response-store.ts";

interface AppDeps extends EndpointDeps, StartDeps, AcknowledgeDeps, SpendDeps, BudgetsDeps {
  readonly log: Logger;
  readonly metrics: AdServerMetrics;
  readonly store: ResponseStore;
}

const NOT_FOUND_DETAIL = `call POST ${INJECTION_PATH} or POST ${ACKNOWLEDGE_PATH}, in lower case and without escapes in the path`;

/** The app of the public listener: both operations, the look-up and reports. */
export function createAdServerApp(deps: AppDeps): Express {
  const app = createApp((finished) => reportRequest(deps, finished));
  app
    .route(INJECTION_PATH)
    .post(makeEndpoint(deps, startOperation(deps)))
    .all(methodNotAllowed("POST"));
  app
    .route(ACKNOWLEDGE_PATH)
    .post(makeEndpoint(deps, acknowledgeOperation(deps)))
    .all(methodNotAllowed("POST"));
  app.route(LOOK_UP_PATH).get(lookUpEndpoint(deps)).all(methodNotAllowed("GET", "HEAD"));
  app.route(SPEND_PATHS).get(spendEndpoint(deps)).all(methodNotAllowed("GET", "HEAD"));
  app.route(BUDGETS_PATH).get(budgetsEndpoint(deps)).all(methodNotAllowed("GET", "HEAD"));
  app.route(API_DOCUMENT_PATH).get(serveApiDocument("ad-server")).all(methodNotAllowed("GET", "HEAD"));
  app.use(notFound(NOT_FOUND_DETAIL));
  app.use(answerErrors(deps.log));
  return app;
}

/** Logs one line for a request and records its duration. Requests of no operation are logged at debug level. */
function reportRequest({ log, metrics }: AppDeps, finished: FinishedRequest): void {
  const { method, status, requestId, durationMs, response } = finished;
  const fields = requestContextOf(response).logFields;
  const operation = operationOf(fields["operation"]);
  metrics.observe(operation, status, durationMs);
  log[levelOf(operation, status)]({
    event: "request",
    method,
    status,
    request_id: requestId,
    duration_ms: durationMs,
    ...fields,
  });
}

function operationOf(name: RequestLogFields[string] | undefined): OperationLabel {
  switch (name) {
    case "start":
    case "acknowledge":
    case "look_up":
    case "report":
      return name;
    default:
      return "other";
  }
}

function levelOf(operation: OperationLabel, status: number): "debug" | "info" | "warn" {
  if (status >= 500) {
    return "warn";
  }
  return operation === "other" ? "debug" : "info";
}
