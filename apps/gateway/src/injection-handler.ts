import { type ErrorCode, sessionIdOf } from "@adrelay/contract";
import type { FallbackReason, ProviderReply } from "@adrelay/core";
import type { Publisher } from "@adrelay/provider";
import {
  type InjectionAnswer,
  makeFallback,
  nameOfRefusal,
  type Refusal,
  type SessionHashes,
  type StartInjection,
} from "@adrelay/relay-kit";
import {
  addToRequestLog,
  headerOf,
  requestIdOf,
  requestSpanOf,
  sendJson,
  sendProblem,
} from "@adrelay/service-kit";
import type { Response } from "express";
import { callerOf } from "./caller.ts";
import { CALLER_TIMEOUT_MAX_MS } from "./config.ts";
import type { GatewayMetrics } from "./gateway-metrics.ts";
import type { JsonCall } from "./public-app.ts";
import { sendRefusal } from "./quota-answers.ts";
import { isoTime } from "./store-answers.ts";

const TIMEOUT_HEADER = "X-Adrelay-Timeout-Ms";
const FALLBACK_HEADER = "X-Adrelay-Fallback";
/** What is missing or wrong in the provider's answer. */
const FALLBACK_DETAIL_HEADER = "X-Adrelay-Fallback-Detail";
/** When the acknowledgment counts as missed: the same value as `deadline_at` in the look-up. */
const ACKNOWLEDGE_BY_HEADER = "X-Adrelay-Acknowledge-By";
const LOWER_CASE_TIMEOUT_HEADER = TIMEOUT_HEADER.toLowerCase();

export interface StartInjectionRoute {
  readonly startInjection: StartInjection;
  readonly defaultTimeoutMs: number;
  readonly fallbackAs: "no_fill" | "error";
  readonly sessionHashes: SessionHashes;
}

/** POST /api/ad-injection/start/ */
export function makeStartInjectionHandler(route: StartInjectionRoute): (call: JsonCall) => Promise<void> {
  // Not async, and what it captures has no body: it must not stay in memory while the provider works.
  return ({ publisher, request, response, holding, bytes, value }) => {
    const timeoutMs = parseTimeoutHeader(
      headerOf(request, LOWER_CASE_TIMEOUT_HEADER),
      route.defaultTimeoutMs,
    );
    if (timeoutMs === undefined) {
      const errors = [
        { path: TIMEOUT_HEADER, message: "must be a whole number of milliseconds from 1 to 30000" },
      ];
      sendProblem(response, "validation_failed", { errors });
      return Promise.resolve();
    }
    const input = {
      publisher,
      holding,
      session: route.sessionHashes.hash(sessionIdOf(value)),
      requestId: requestIdOf(response),
      trace: requestSpanOf(response).context,
      timeoutMs,
      caller: callerOf(response),
    };
    return route.startInjection(input, bytes).then((answer) => sendAnswer(route, response, answer));
  };
}

/**
 * Answers an injection that was not admitted. It isn't recorded: what is refused to spare this process must not cost Redis
 * anything, and nobody acknowledges a fallback.
 */
export function makeRefuseInjection(
  fallbackAs: StartInjectionRoute["fallbackAs"],
  metrics: Pick<GatewayMetrics, "countInjection">,
): (publisher: Publisher, response: Response, refusal: Refusal) => void {
  return ({ id }, response, refusal) => {
    metrics.countInjection(id, { outcome: "fallback", reason: "overloaded" });
    addToRequestLog(response, { outcome: "fallback_overloaded" });
    response.set(FALLBACK_HEADER, "overloaded");
    response.set(FALLBACK_DETAIL_HEADER, nameOfRefusal(refusal));
    if (fallbackAs === "error") {
      sendRefusal(response, refusal);
    } else {
      sendJson(response, 202, JSON.stringify(makeFallback(0).body));
    }
  };
}

function sendAnswer({ fallbackAs }: StartInjectionRoute, response: Response, answer: InjectionAnswer): void {
  if (answer.kind !== "caller_gone" && answer.untrackedId !== undefined) {
    addToRequestLog(response, { untracked: true, ad_response_id: answer.untrackedId });
  }
  switch (answer.kind) {
    case "pass_through":
      addToRequestLog(response, { outcome: answer.outcome });
      if (answer.acknowledgeByMs !== undefined) {
        response.setHeader(ACKNOWLEDGE_BY_HEADER, isoTime(answer.acknowledgeByMs));
      }
      sendJson(response, answer.status, answer.raw.bytes, mediaTypeOf(answer.raw.contentType));
      return;
    case "fallback":
      addToRequestLog(response, { outcome: `fallback_${answer.reason}`, ...fieldsOf(answer.reply) });
      response.set(FALLBACK_HEADER, answer.reason);
      if (answer.answerFault !== undefined) {
        addToRequestLog(response, { answer_fault: answer.answerFault });
        response.set(FALLBACK_DETAIL_HEADER, answer.answerFault);
      }
      if (fallbackAs === "error") {
        sendProblem(response, fallbackError(answer.reason));
      } else {
        sendJson(response, 202, JSON.stringify(answer.fallback.body));
      }
      return;
    case "caller_gone":
      addToRequestLog(response, { outcome: "caller_gone" });
      return;
    default:
      answer satisfies never;
  }
}

/** The log fields of a call without an answer, as in the line of an attempt. */
function fieldsOf(reply: ProviderReply | undefined) {
  if (reply?.kind !== "failed") {
    return {};
  }
  const { code, cause } = reply;
  return cause === undefined ? { code } : { code, cause };
}

/** The provider's media type if it is valid, otherwise that of JSON: the body is JSON in any case. */
function mediaTypeOf(contentType: string | undefined): string {
  return contentType !== undefined && /^[\w.+-]+\/[\w.+-]+\s*(;.*)?$/.test(contentType)
    ? contentType
    : "application/json";
}

/** The time limit that a caller set for an injection; undefined if the header isn't a whole number in range. */
function parseTimeoutHeader(header: string | undefined, fallbackMs: number): number | undefined {
  if (header === undefined) {
    return fallbackMs;
  }
  const timeoutMs = /^\d{1,9}$/.test(header.trim()) ? Number(header) : 0;
  return timeoutMs >= 1 && timeoutMs <= CALLER_TIMEOUT_MAX_MS ? timeoutMs : undefined;
}

/** The error in place of a fallback, with INJECTION_FALLBACK=error. */
function fallbackError(reason: FallbackReason): ErrorCode {
  if (reason === "overloaded") {
    return reason;
  }
  return reason === "timeout" ? "provider_timeout" : "provider_unavailable";
}
