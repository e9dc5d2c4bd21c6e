/** The HTTP app: reads a call, finds its faults, decides and sends the answer. */
import { setTimeout as pause } from "node:timers/promises";
import {
  addToRequestLog,
  createApp,
  type FinishedRequest,
  headerOf,
  makeReadBody,
  requestContextOf,
  requestIdOf,
} from "@adrelay/service-kit";
import type { ErrorRequestHandler, Express, Request, Response } from "express";
import type { Logger } from "pino";
import { type CallFaults, FAULT_HEADER, parseFaultScript } from "../faults/call-faults.ts";
import { SeenCalls } from "../faults/seen-calls.ts";
import { AnswerWriter } from "./answer-writer.ts";
import { apiOf } from "./api-errors.ts";
import type { CallRecords, SentRecord } from "./call-records.ts";
import { decideOutcome, failed, type ModelCall, type Outcome, operationOf } from "./decide-outcome.ts";
import type { OpenAnswers } from "./open-answers.ts";
import { sendJson, sendStream } from "./send-answer.ts";

export interface AppDeps {
  readonly log: Logger;
  readonly records: CallRecords;
  readonly openAnswers: OpenAnswers;
  /** Pause between two events of a stream. */
  readonly delayMs: number;
}

/** As large as the largest that a provider takes. */
const BODY_BYTES_MAX = 32 * 1024 * 1024;

export function createDemoModelApp(deps: AppDeps): Express {
  const { log, records } = deps;
  const app = createApp((finished) => reportRequest(log, finished));
  const readBody = makeReadBody(BODY_BYTES_MAX);
  const seen = new SeenCalls();
  app.get("/readyz", (_request, response) => void response.json({ status: "ok" }));
  if (records.isOn) {
    app.get("/demo/calls", (request, response) => {
      response.json(records.show(Number(request.query["after"] ?? 0)));
    });
  }
  app.use(async (request: Request, response: Response) => {
    deps.openAnswers.add(response);
    await readBody(request, response);
    const call = callOf(request);
    const record = records.add({
      method: call.method,
      path: request.originalUrl,
      rawHeaders: request.rawHeaders,
      bytes: call.bytes,
    });
    addToRequestLog(response, { operation: operationOf(call.path) });
    const script = parseFaultScript(headerOf(request, FAULT_HEADER) ?? "");
    if (script.kind === "faulty") {
      const refusal = failed(call.api, { status: 400, message: script.message });
      await sendOutcome({ outcome: refusal, response, record, faults: {}, delayMs: 0 });
      return;
    }
    await answerCall({ call, response, record, deps, faults: seen.faultsOf(call, script.faults) });
  });
  app.use(answerErrors(log));
  return app;
}

function callOf(request: Request): ModelCall {
  const { method, path, headers } = request;
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  request.body = undefined;
  return { method, path, headers, bytes, body: parseJson(bytes), api: apiOf(path, headers) };
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}

interface Answering {
  readonly call: ModelCall;
  readonly response: Response;
  readonly record: SentRecord | undefined;
  readonly deps: AppDeps;
  readonly faults: CallFaults;
}

async function answerCall({ call, response, record, deps, faults }: Answering): Promise<void> {
  if (faults.headersDelayMs !== undefined) {
    await pause(faults.headersDelayMs);
  }
  if (faults.isResetBeforeHeaders === true) {
    await new AnswerWriter(response, { record }).reset();
    return;
  }
  const delayMs = faults.delayMs ?? deps.delayMs;
  await sendOutcome({ outcome: decideOutcome(call, faults), response, record, faults, delayMs });
}

interface Sending {
  readonly outcome: Outcome;
  readonly response: Response;
  readonly record: SentRecord | undefined;
  readonly faults: CallFaults;
  readonly delayMs: number;
}

async function sendOutcome({ outcome, response, record, faults, delayMs }: Sending): Promise<void> {
  const { isGzip, splitBytes } = faults;
  const writer = new AnswerWriter(response, { isGzip, splitBytes, record });
  switch (outcome.kind) {
    case "json":
      return await sendJson(writer, outcome, faults);
    case "stream":
      return await sendStream(writer, { ...outcome, delayMs, faults });
    default:
      outcome satisfies never;
  }
}

/** Logs one line for a request, without any text of it. */
function reportRequest(
  log: Logger,
  { method, status, requestId, durationMs, response }: FinishedRequest,
): void {
  log[status >= 500 ? "warn" : "info"]({
    event: "request",
    method,
    status,
    request_id: requestId,
    duration_ms: durationMs,
    ...requestContextOf(response).logFields,
  });
}

/** Bodies that are too long, cut off or in an unknown encoding have a status; anything else is a bug. */
function answerErrors(log: Logger): ErrorRequestHandler {
  return async (error: unknown, request, response, next) => {
    if (response.headersSent) {
      next(error);
      return;
    }
    const { status } = Object(error);
    const isCallers = typeof status === "number" && status < 500;
    if (!isCallers) {
      log.error({
        event: "request_failed",
        request_id: requestIdOf(response),
        method: request.method,
        err: error,
      });
    }
    const outcome = failed(apiOf(request.path, request.headers), {
      status: isCallers ? status : 500,
      message: isCallers ? "The body can't be read as it was sent." : "The demo model failed.",
    });
    await sendOutcome({ outcome, response, record: undefined, faults: {}, delayMs: 0 });
  };
}
