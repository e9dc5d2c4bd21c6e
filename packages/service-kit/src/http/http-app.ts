import express, { type Express, type Request, type Response } from "express";
import { NO_TRACING, type Tracing } from "../tracing/tracing.ts";
import { giveRequestId } from "./request-id.ts";
import { openRequestSpan, requestSpanOf } from "./request-span.ts";

/** What is known of a request once its answer is out or its caller has gone. */
export interface FinishedRequest {
  readonly method: string;
  readonly requestId: string;
  /** The answer's status; 499 if the caller hung up before it had one. */
  readonly status: number;
  readonly durationMs: number;
  readonly response: Response;
}

export const CALLER_GONE_STATUS = 499;

/** An Express app of the house: request ids, exact paths' case, no fingerprint, one span and one report a request. */
export function createApp(
  onFinished: (finished: FinishedRequest) => void,
  tracing: Tracing = NO_TRACING,
): Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.enable("case sensitive routing");
  // One layer for all of it: each costs the router a round.
  app.use((request: Request, response: Response, next) => {
    const startedAtMs = performance.now();
    const requestId = giveRequestId(request, response);
    openRequestSpan(tracing, request, response);
    response.on("close", () => {
      const status = response.writableFinished ? response.statusCode : CALLER_GONE_STATUS;
      const durationMs = performance.now() - startedAtMs;
      onFinished({ method: request.method, requestId, status, durationMs, response });
      const span = requestSpanOf(response);
      span.set({ "http.response.status_code": status, "adrelay.request_id": requestId });
      span.end({ isFault: status >= 500 });
    });
    next();
  });
  return app;
}
