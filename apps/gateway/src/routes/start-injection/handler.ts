import { parseJsonObject, requestIdOf, sendProblem } from "@adrelay/service-kit";
import type { Request, Response } from "express";
import type { PublisherHandler } from "../../auth/authenticate.ts";
import { annotate } from "../../request-notes.ts";
import { fallbackError } from "./fallback.ts";
import type { InjectionAnswer, StartInjection } from "./start-injection.ts";
import { parseTimeoutHeader, TIMEOUT_HEADER } from "./timeout-header.ts";

export const FALLBACK_HEADER = "X-Adrelay-Fallback";

export interface StartInjectionRoute {
  readonly startInjection: StartInjection;
  readonly defaultTimeoutMs: number;
  readonly fallbackAs: "no_fill" | "error";
}

/** POST /api/ad-injection/start/ */
export function makeStartInjectionHandler(route: StartInjectionRoute): PublisherHandler {
  return async (publisher, request, response) => {
    const timeoutMs = parseTimeoutHeader(request.get(TIMEOUT_HEADER), route.defaultTimeoutMs);
    if (timeoutMs === undefined) {
      const errors = [
        { path: TIMEOUT_HEADER, message: "must be a whole number of milliseconds from 1 to 30000" },
      ];
      sendProblem(response, "validation_failed", { errors });
      return;
    }
    const parsed = parseJsonObject(request);
    if (parsed.kind === "refused") {
      sendProblem(response, parsed.code, { detail: parsed.detail });
      return;
    }
    const answer = await route.startInjection({
      publisher,
      body: bytesOf(request),
      requestId: requestIdOf(response),
      timeoutMs,
      callerGone: hangUpSignal(response),
    });
    sendAnswer(response, answer, route.fallbackAs);
  };
}

function sendAnswer(response: Response, answer: InjectionAnswer, fallbackAs: "no_fill" | "error"): void {
  switch (answer.kind) {
    case "pass_through":
      annotate(response, { outcome: answer.outcome });
      response.status(answer.status).set("Content-Type", answer.raw.contentType ?? "application/json");
      response.send(answer.raw.bytes);
      return;
    case "fallback":
      annotate(response, { outcome: `fallback_${answer.reason}` });
      response.set(FALLBACK_HEADER, answer.reason);
      if (fallbackAs === "error") {
        sendProblem(response, fallbackError(answer.reason));
      } else {
        response.status(202).json(answer.fallback.body);
      }
      return;
    case "caller_gone":
      annotate(response, { outcome: "caller_gone" });
      return;
    default:
      answer satisfies never;
  }
}

/** The body as it came; `parseJsonObject` has made sure that it is there. */
function bytesOf(request: Request): Buffer {
  const body: unknown = request.body;
  return Buffer.isBuffer(body) ? body : Buffer.alloc(0);
}

/** Fires if the connection closes before the answer is out. */
function hangUpSignal(response: Response): AbortSignal {
  const controller = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) {
      controller.abort();
    }
  });
  return controller.signal;
}
