import { ACKNOWLEDGE_PATH, INJECTION_PATH } from "@adrelay/contract";
import {
  answerErrors,
  createApp,
  createOpsApp,
  type FinishedRequest,
  methodNotAllowed,
  requestContextOf,
} from "@adrelay/service-kit";
import type { Express } from "express";
import type { Logger } from "pino";
import type { AdServerMetrics, OperationLabel } from "./metrics.ts";
import { type AcknowledgeDeps, acknowledgeOperation } from "./routes/acknowledge/acknowledge.ts";
import { type EndpointDeps, makeEndpoint } from "./routes/endpoint.ts";
import { LOOK_UP_PATH, lookUpEndpoint } from "./routes/look-up/look-up.ts";
import { BUDGETS_PATH, type BudgetsDeps, budgetsEndpoint } from "./routes/reports/budgets.ts";
import { SPEND_PATHS, type SpendDeps, spendEndpoint } from "./routes/reports/spend.ts";
import { type StartDeps, startOperation } from "./routes/start/start.ts";
import type { ResponseStore } from "./store/response-store.ts";

export interface AppDeps extends EndpointDeps, StartDeps, AcknowledgeDeps, SpendDeps, BudgetsDeps {
  readonly log: Logger;
  readonly metrics: AdServerMetrics;
  readonly store: ResponseStore;
  isStopping(): boolean;
  /** Whether Redis can be written to now. */
  checkRedis(): Promise<boolean>;
}

/** The one listener of the ad server: both operations, the look-up, metrics and health. */
export function createAdServerApp(deps: AppDeps): Express {
  const app = createApp((finished) => report(deps, finished));
  app
    .route(INJECTION_PATH)
    .post(makeEndpoint(deps, startOperation(deps)))
    .all(methodNotAllowed("POST"));
  app
    .route(ACKNOWLEDGE_PATH)
    .post(makeEndpoint(deps, acknowledgeOperation(deps)))
    .all(methodNotAllowed("POST"));
  app.route(LOOK_UP_PATH).get(lookUpEndpoint(deps)).all(methodNotAllowed("GET"));
  app.route(SPEND_PATHS).get(spendEndpoint(deps)).all(methodNotAllowed("GET"));
  app.route(BUDGETS_PATH).get(budgetsEndpoint(deps)).all(methodNotAllowed("GET"));
  app.use(
    createOpsApp({
      collect: () => deps.metrics.collect(),
      checks: [{ name: "redis", check: deps.checkRedis }],
      isStopping: deps.isStopping,
      log: deps.log,
    }),
  );
  app.use(answerErrors(deps.log));
  return app;
}

/** The canonical line of a request, and its time in the metrics. Probes and scrapes are worth a line at debug only. */
function report({ log, metrics }: AppDeps, finished: FinishedRequest): void {
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

function operationOf(noted: string | number | undefined): OperationLabel {
  switch (noted) {
    case "start":
    case "acknowledge":
    case "look_up":
    case "report":
      return noted;
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
