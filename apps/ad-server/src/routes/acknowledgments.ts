import { randomUUID } from "node:crypto";
import {
  type AcknowledgmentRequest,
  type AcknowledgmentResponse,
  acknowledgmentRequestSchema,
  adAckIdSchema,
  adResponseIdSchema,
  verdictSchema,
} from "@adrelay/contract";
import { addToRequestLog, sendProblem } from "@adrelay/service-kit";
import { type Judgment, judgeAnswer } from "@adrelay/verdict";
import type { RequestHandler, Response } from "express";
import { z } from "zod";
import type { ApiKeys } from "../access.ts";
import type { Stored } from "../store/redis-store.ts";
import type { AcknowledgeOutcome, ResponseStore } from "../store/response-store.ts";
import { admitKey, type Call, type Operation, sendStorageUnavailable } from "./endpoint.ts";

export interface AcknowledgeDeps {
  readonly store: Pick<ResponseStore, "loadShownAd" | "acknowledge">;
  /** The current budget of an ad; 0 if the catalogue doesn't have the ad. */
  budgetMicrosOf(adId: string): number;
}

/** POST /api/ad-injection/acknowledge/: the first acknowledgment of a response counts, each later one gets a 409. */
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
  // Without an ad the store refuses the acknowledgment, whatever the verdict.
  const judgment: Judgment = ad === undefined ? { verdict: "no_ad_used" } : judgeAnswer(answer, ad.product);
  const budgetMicros = ad === undefined ? 0 : budgetMicrosOf(ad.ad);
  const adAckId = adAckIdSchema.parse(randomUUID());
  const outcome = await store.acknowledge({ id, publisher, adAckId, judgment, budgetMicros });
  if (outcome.kind === "ok" && outcome.value.kind === "recorded") {
    addToRequestLog(response, logFieldsOf(judgment));
  }
  return outcome;
}

function logFieldsOf(judgment: Judgment) {
  return judgment.verdict === "ok"
    ? { verdict: judgment.verdict, disclosed: String(judgment.disclosed), link: judgment.link }
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

/** Answer of the look-up. */
export const lookUpAnswerSchema = z.object({
  ad_response_id: z.guid(),
  acknowledged: z.boolean(),
  ad_ack_id: z.guid().nullable(),
  status: verdictSchema.nullable(),
  disclosed: z.boolean().nullable(),
  link: z.string().nullable(),
  posts: z.int().nonnegative(),
});

interface LookUpDeps {
  readonly keys: ApiKeys;
  readonly store: Pick<ResponseStore, "load">;
}

export const LOOK_UP_PATH = "/acknowledgments/:ad_response_id";

/** GET /acknowledgments/{ad_response_id}: the state of a publisher's own response. */
export function lookUpEndpoint({ keys, store }: LookUpDeps): RequestHandler {
  return async (request, response) => {
    addToRequestLog(response, { operation: "look_up" });
    const publisher = admitKey(keys, request, response);
    if (publisher === undefined) {
      return;
    }
    // An id that isn't a UUID is unknown, not malformed.
    const id = adResponseIdSchema.safeParse(request.params["ad_response_id"]);
    if (!id.success) {
      sendProblem(response, "unknown_ad_response");
      return;
    }
    const stored = await store.load(id.data);
    if (stored.kind === "unavailable") {
      addToRequestLog(response, { reason: stored.reason });
      sendStorageUnavailable(response);
    } else if (stored.value === undefined) {
      sendProblem(response, "unknown_ad_response");
    } else if (stored.value.publisher !== publisher) {
      sendProblem(response, "other_publisher");
    } else {
      const { acknowledgment, posts, disclosed, link } = stored.value;
      response.json({
        ad_response_id: id.data,
        acknowledged: acknowledgment !== undefined,
        ad_ack_id: acknowledgment?.adAckId ?? null,
        status: acknowledgment?.verdict ?? null,
        disclosed: disclosed ?? null,
        link: link ?? null,
        posts,
      } satisfies z.infer<typeof lookUpAnswerSchema>);
    }
  };
}
