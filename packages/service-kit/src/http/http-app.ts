import express, { type Express, type Request, type Response } from "express";
import { assignRequestId, requestIdOf } from "./request-id.ts";

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

/** An Express app of the house: request ids, exact paths' case, no fingerprint, one report a request. */
export function createApp(onFinished: (finished: FinishedRequest) => void): Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.enable("case sensitive routing");
  app.use(assignRequestId);
  app.use((request: Request, response: Response, next) => {
    const startedAtMs = performance.now();
    response.once("close", () => {
      onFinished({
        method: request.method,
        requestId: requestIdOf(response),
        status: response.writableFinished ? response.statusCode : CALLER_GONE_STATUS,
        durationMs: performance.now() - startedAtMs,
        response,
      });
    });
    next();
  });
  return app;
}
