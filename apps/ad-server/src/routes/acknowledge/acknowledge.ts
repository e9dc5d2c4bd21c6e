import { randomUUID } from "node:crypto";
import {
  type AcknowledgmentRequest,
  type AcknowledgmentResponse,
  acknowledgmentRequestSchema,
  adAckIdSchema,
} from "@adrelay/contract";
import { addToRequestLog, sendProblem } from "@adrelay/service-kit";
import type { Response } from "express";
import type { Stored } from "../../store/books.ts";
import type { AcknowledgeOutcome } from "../../store/replies.ts";
import type { ResponseStore } from "../../store/response-store.ts";
import { type Judgment, judgeAnswer } from "../../verdict/judge-answer.ts";
import { sendStorageUnavailable } from "../answers.ts";
import type { Call, Operation } from "../endpoint.ts";

export interface AcknowledgeDeps {
  readonly store: Pick<ResponseStore, "loadShownAd" | "acknowledge">;
  /** The budget of an ad as of now; 0 for one that the catalogue doesn't hold. */
  budgetMicrosOf(adId: string): number;
}

/** POST /api/ad-injection/acknowledge/: the first one for a response decides, each later one gets a 409. */
export function acknowledgeOperation(deps: AcknowledgeDeps): Operation<AcknowledgmentRequest> {
  return {
    name: "acknowledge",
    schema: acknowledgmentRequestSchema,
    members: ["ad_response_id", "llm_response"],
    handle: async (call) => {
      addToRequestLog(call.response, { ad_response_id: call.body.ad_response_id });
      const stored = await acknowledge(deps, call);
      if (stored.kind === "unavailable") {
        addToRequestLog(call.response, { reason: stored.reason });
        sendStorageUnavailable(call.response);
        return;
      }
      addToRequestLog(call.response, { outcome: stored.value.kind });
      sendOutcome(call.response, stored.value);
    },
  };
}

async function acknowledge(
  { store, budgetMicrosOf }: AcknowledgeDeps,
  { body, publisher, response }: Call<AcknowledgmentRequest>,
): Promise<Stored<AcknowledgeOutcome>> {
  const { ad_response_id: id, llm_response: answer } = body;
  const shown = await store.loadShownAd(id);
  if (shown.kind === "unavailable") {
    return shown;
  }
  const { value: ad } = shown;
  // Without an ad the store refuses it, whatever the verdict.
  const judgment: Judgment = ad === undefined ? { verdict: "no_ad_used" } : judgeAnswer(answer, ad.product);
  const budgetMicros = ad === undefined ? 0 : budgetMicrosOf(ad.ad);
  const adAckId = adAckIdSchema.parse(randomUUID());
  const outcome = await store.acknowledge({ id, publisher, adAckId, judgment, budgetMicros });
  if (outcome.kind === "ok" && outcome.value.kind === "recorded") {
    addToRequestLog(response, noteOf(judgment));
  }
  return outcome;
}

function noteOf(judgment: Judgment) {
  return judgment.verdict === "ok"
    ? { verdict: judgment.verdict, disclosed: String(judgment.disclosed) }
    : { verdict: judgment.verdict };
}

function sendOutcome(response: Response, outcome: AcknowledgeOutcome): void {
  switch (outcome.kind) {
    case "recorded":
      response.status(200).json({
        ad_ack_id: outcome.acknowledgment.adAckId,
        status: outcome.acknowledgment.verdict,
        success: true,
      } satisfies AcknowledgmentResponse);
      return;
    case "already_acknowledged":
      sendProblem(response, "already_acknowledged", {
        extensions: {
          ad_ack_id: outcome.acknowledgment.adAckId,
          acknowledgment_status: outcome.acknowledgment.verdict,
        },
      });
      return;
    case "unknown_ad_response":
    case "other_publisher":
    case "not_acknowledgeable":
      sendProblem(response, outcome.kind);
      return;
    default:
      outcome satisfies never;
  }
}
