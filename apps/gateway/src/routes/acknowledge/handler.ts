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
import type { Response } from "express";
import type { JsonCall } from "../../endpoint.ts";
import { ackIdOf } from "../../intake/fingerprints.ts";
import { sendUnavailable } from "../ledger-answers.ts";
import type { Acknowledge } from "./acknowledge.ts";
import { parsePrefer } from "./prefer.ts";
import type { Standing } from "./standing.ts";

export const PROVIDER_ACK_ID_HEADER = "X-Adrelay-Provider-Ack-Id";

export interface AcknowledgeRoute {
  readonly acknowledge: Acknowledge;
  readonly defaultWaitMs: number;
}

/** POST /api/ad-injection/acknowledge/ */
export function makeAcknowledgeHandler(route: AcknowledgeRoute): (call: JsonCall) => Promise<void> {
  return async ({ publisher, request, response, text, value }) => {
    const parsed = parseAcknowledgment(text, value);
    if (parsed.kind === "faulty") {
      sendProblem(response, "validation_failed", { errors: parsed.faults });
      return;
    }
    const { ad_response_id: id, llm_response } = parsed.body;
    addToRequestLog(response, { ad_response_id: id });
    const { waitMs, applied } = parsePrefer(headerOf(request, "prefer"), route.defaultWaitMs);
    if (applied !== undefined) {
      response.setHeader("Preference-Applied", applied);
    }
    const requestId = requestIdOf(response);
    const ackId = ackIdOf(id);
    const standing = await route.acknowledge({
      publisher: publisher.id,
      id,
      ackId,
      text: llm_response,
      body: text,
      requestId,
      trace: requestSpanOf(response).context,
      waitMs,
    });
    sendStanding(response, { ackId, standing });
  };
}

type Parsed =
  | { readonly kind: "ok"; readonly body: AcknowledgmentRequest }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

/** Checks just what the relay itself needs; each member once, since parsers differ in which one they take. */
function parseAcknowledgment(text: string, value: JsonObject): Parsed {
  const parsed = parseAcknowledgmentRequest(value);
  if (!parsed.success) {
    return { kind: "faulty", faults: faultsOf(parsed.error) };
  }
  const repeated = duplicateKeys(text, ["ad_response_id", "llm_response"]);
  return repeated.length > 0
    ? { kind: "faulty", faults: repeated.map((path) => ({ path, message: "stands more than once" })) }
    : { kind: "ok", body: parsed.data };
}

function sendStanding(response: Response, { ackId, standing }: { ackId: AdAckId; standing: Standing }): void {
  switch (standing.kind) {
    case "delivered":
      addToRequestLog(response, { outcome: standing.verdict });
      if (standing.providerAckId !== undefined) {
        response.set(PROVIDER_ACK_ID_HEADER, standing.providerAckId);
      }
      sendJson(response, 200, JSON.stringify(answerOf(ackId, standing.verdict)));
      return;
    case "open":
      addToRequestLog(response, { outcome: "recoverable_error" });
      sendJson(response, 201, JSON.stringify(answerOf(ackId, "recoverable_error")));
      return;
    case "error":
      addToRequestLog(response, { outcome: standing.code });
      if (standing.code === "queue_unavailable") {
        sendUnavailable(response);
      } else {
        sendProblem(response, standing.code);
      }
      return;
    default:
      standing satisfies never;
  }
}

function answerOf(ackId: AdAckId, status: AcknowledgmentResponse["status"]): AcknowledgmentResponse {
  return { ad_ack_id: ackId, status, success: status !== "recoverable_error" };
}
