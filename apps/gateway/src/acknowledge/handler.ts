import {
  type AcknowledgmentRequest,
  type AcknowledgmentResponse,
  type AdAckId,
  duplicateKeys,
  type FieldFault,
  faultsOf,
  parseAcknowledgmentRequest,
} from "@adrelay/contract";
import {
  addToRequestLog,
  headerOf,
  type JsonObject,
  requestIdOf,
  requestSpanOf,
  sendJson,
  sendProblem,
} from "@adrelay/service-kit";
import { ackIdOf } from "@adrelay/store";
import type { Response } from "express";
import { callerOf } from "../caller.ts";
import { CALLER_TIMEOUT_MAX_MS } from "../config.ts";
import type { JsonCall } from "../public-app.ts";
import { sendOverQuota, sendStorageFull } from "../quota-answers.ts";
import { STATE_HEADER, sendUnavailable } from "../store-answers.ts";
import type { Acknowledge } from "./acknowledge.ts";
import type { AcknowledgeOutcome } from "./outcomes.ts";

const PROVIDER_ACK_ID_HEADER = "X-Adrelay-Provider-Ack-Id";

export interface AcknowledgeRoute {
  readonly acknowledge: Acknowledge;
  readonly defaultWaitMs: number;
}

/** POST /api/ad-injection/acknowledge/ */
export function makeAcknowledgeHandler(route: AcknowledgeRoute): (call: JsonCall) => Promise<void> {
  // Not async, and what it captures has no body: the text must not stay in memory during the wait.
  return ({ publisher, request, response, holding, text, value }) => {
    const parsed = parseAcknowledgment(text, value);
    if (parsed.kind === "faulty") {
      sendProblem(response, "validation_failed", { errors: parsed.faults });
      return Promise.resolve();
    }
    const { ad_response_id: id, llm_response } = parsed.body;
    addToRequestLog(response, { ad_response_id: id });
    const { waitMs, applied } = parsePrefer(headerOf(request, "prefer"), route.defaultWaitMs);
    if (applied !== undefined) {
      response.setHeader("Preference-Applied", applied);
    }
    const requestId = requestIdOf(response);
    const ackId = ackIdOf(id);
    const body = holding.takeBody();
    const outcome = route.acknowledge({
      publisher: publisher.id,
      id,
      ackId,
      text: llm_response,
      body: text,
      requestId,
      trace: requestSpanOf(response).context,
      waitMs,
      caller: callerOf(response),
      onLetGo: () => body.release(),
    });
    return outcome.then((known) => sendOutcome(response, ackId, known));
  };
}

type Parsed =
  | { readonly kind: "ok"; readonly body: AcknowledgmentRequest }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

/**
 * Checks only what the relay itself needs. A repeated member is refused, because parsers differ in which one they use.
 */
function parseAcknowledgment(text: string, value: JsonObject): Parsed {
  const parsed = parseAcknowledgmentRequest(value);
  if (!parsed.success) {
    return { kind: "faulty", faults: faultsOf(parsed.error) };
  }
  const repeated = duplicateKeys(text, ["ad_response_id", "llm_response"]);
  return repeated.length > 0
    ? { kind: "faulty", faults: repeated.map((path) => ({ path, message: "must not be repeated" })) }
    : { kind: "ok", body: parsed.data };
}

function sendOutcome(response: Response, ackId: AdAckId, outcome: AcknowledgeOutcome): void {
  const state = outcome.kind === "delivered" ? outcome.kind : "state" in outcome ? outcome.state : undefined;
  if (state !== undefined) {
    response.setHeader(STATE_HEADER, state);
  }
  switch (outcome.kind) {
    case "delivered":
      addToRequestLog(response, { outcome: outcome.verdict });
      if (outcome.providerAckId !== undefined) {
        response.set(PROVIDER_ACK_ID_HEADER, outcome.providerAckId);
      }
      sendJson(response, 200, JSON.stringify(answerOf(ackId, outcome.verdict)));
      return;
    case "open":
      addToRequestLog(response, { outcome: "recoverable_error" });
      sendJson(response, 201, JSON.stringify(answerOf(ackId, "recoverable_error")));
      return;
    case "over_quota":
      addToRequestLog(response, { outcome: outcome.quota });
      sendOverQuota(response, { ...outcome, limit: outcome.limitBytes, used: outcome.usedBytes });
      return;
    case "error":
      addToRequestLog(response, { outcome: outcome.code });
      if (outcome.code === "queue_unavailable") {
        sendUnavailable(response);
      } else if (outcome.code === "storage_full") {
        sendStorageFull(response);
      } else {
        sendProblem(response, outcome.code);
      }
      return;
    default:
      outcome satisfies never;
  }
}

function answerOf(ackId: AdAckId, status: AcknowledgmentResponse["status"]): AcknowledgmentResponse {
  return { ad_ack_id: ackId, status, success: status !== "recoverable_error" };
}

/** How long a caller wants to wait for the outcome, and the confirmation of that (RFC 7240). */
interface Preference {
  readonly waitMs: number;
  /** Value of Preference-Applied; undefined if the caller sent no preference that we know. */
  readonly applied: string | undefined;
}

const NO_WAIT = { waitMs: 0, applied: "respond-async" } as const;

/**
 * Reads `Prefer: respond-async` and `Prefer: wait=SECONDS` (whole seconds, as in RFC 7240). The first
 * of each counts. respond-async without a wait means no wait; together with a wait, the wait counts.
 */
function parsePrefer(header: string | undefined, defaultWaitMs: number): Preference {
  if (header === undefined) {
    return { waitMs: defaultWaitMs, applied: undefined };
  }
  if (header === NO_WAIT.applied) {
    return NO_WAIT;
  }
  const preferences = header
    .toLowerCase()
    .split(",")
    .map((part) => part.split(";")[0]?.trim() ?? "");
  const wait = preferences
    .map((part) => /^wait\s*=\s*"?(\d{1,9})"?$/.exec(part)?.[1])
    .find((found) => found !== undefined);
  if (wait !== undefined) {
    const waitMs = Math.min(Number(wait) * 1000, CALLER_TIMEOUT_MAX_MS);
    return { waitMs, applied: `wait=${waitMs / 1000}` };
  }
  return preferences.includes(NO_WAIT.applied) ? NO_WAIT : { waitMs: defaultWaitMs, applied: undefined };
}
