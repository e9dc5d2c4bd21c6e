import {
  type AcknowledgmentRequest,
  type AcknowledgmentResponse,
  type AdResponseId,
  acknowledgmentRequestSchema,
  duplicateKeys,
  faultsOf,
} from "@adrelay/contract";
import { parseJsonObject, requestIdOf, sendProblem } from "@adrelay/service-kit";
import type { Request, Response } from "express";
import type { PublisherHandler } from "../../auth/authenticate.ts";
import { ackIdOf } from "../../intake/fingerprints.ts";
import { annotate } from "../../request-notes.ts";
import type { Acknowledge } from "./acknowledge.ts";
import { parsePrefer } from "./prefer.ts";
import type { Standing } from "./standing.ts";

export const PROVIDER_ACK_ID_HEADER = "X-Adrelay-Provider-Ack-Id";

const RETRY_AFTER_SECONDS = "1";

export interface AcknowledgeRoute {
  readonly acknowledge: Acknowledge;
  readonly defaultWaitMs: number;
}

/** POST /api/ad-injection/acknowledge/ */
export function makeAcknowledgeHandler({ acknowledge, defaultWaitMs }: AcknowledgeRoute): PublisherHandler {
  return async (publisher, request, response) => {
    const parsed = parseAcknowledgment(request, response);
    if (parsed === undefined) {
      return;
    }
    const id = parsed.value.ad_response_id;
    annotate(response, { ad_response_id: id });
    const { waitMs, applied } = parsePrefer(request.get("Prefer"), defaultWaitMs);
    if (applied !== undefined) {
      response.set("Preference-Applied", applied);
    }
    const standing = await acknowledge({
      publisher: publisher.id,
      id,
      text: parsed.value.llm_response,
      body: parsed.text,
      requestId: requestIdOf(response),
      waitMs,
    });
    sendStanding(response, id, standing);
  };
}

/** The parsed body with its text; undefined if an error answer was sent. */
function parseAcknowledgment(
  request: Request,
  response: Response,
): { value: AcknowledgmentRequest; text: string } | undefined {
  const json = parseJsonObject(request);
  if (json.kind === "refused") {
    sendProblem(response, json.code, { detail: json.detail });
    return undefined;
  }
  const parsed = acknowledgmentRequestSchema.safeParse(json.value);
  if (!parsed.success) {
    sendProblem(response, "validation_failed", { errors: faultsOf(parsed.error) });
    return undefined;
  }
  const repeated = duplicateKeys(json.text, ["ad_response_id", "llm_response"]);
  if (repeated.length > 0) {
    const errors = repeated.map((path) => ({ path, message: "stands more than once" }));
    sendProblem(response, "validation_failed", { errors });
    return undefined;
  }
  return { value: parsed.data, text: json.text };
}

function sendStanding(response: Response, id: AdResponseId, standing: Standing): void {
  switch (standing.kind) {
    case "delivered":
      annotate(response, { outcome: standing.verdict });
      if (standing.providerAckId !== undefined) {
        response.set(PROVIDER_ACK_ID_HEADER, standing.providerAckId);
      }
      response.status(200).json(answerOf(id, standing.verdict));
      return;
    case "open":
      annotate(response, { outcome: "recoverable_error" });
      response.status(201).json(answerOf(id, "recoverable_error"));
      return;
    case "error":
      annotate(response, { outcome: standing.code });
      if (standing.code === "queue_unavailable") {
        response.set("Retry-After", RETRY_AFTER_SECONDS);
      }
      sendProblem(response, standing.code);
      return;
    default:
      standing satisfies never;
  }
}

function answerOf(id: AdResponseId, status: AcknowledgmentResponse["status"]): AcknowledgmentResponse {
  return { ad_ack_id: ackIdOf(id), status, success: status !== "recoverable_error" };
}
