import { randomUUID } from "node:crypto";
import { type AdResponseId, adResponseIdSchema, type EnhancementResponse } from "@adrelay/contract";

/** The relay's own answer, in the service's form: no ad. The chat goes on with the user's prompt. */
export interface Fallback {
  readonly adResponseId: AdResponseId;
  readonly body: EnhancementResponse;
}

/** Makes a fallback with a new id. */
export function makeFallback(elapsedMs: number): Fallback {
  const adResponseId = newAdResponseId();
  const body = {
    ad_request_id: randomUUID(),
    ad_response_id: adResponseId,
    status: "no_fill",
    success: false,
    execution_time_ms: Math.round(elapsedMs * 1000) / 1000,
    enhanced_prompt: null,
    product_name: null,
  } as const;
  return { adResponseId, body };
}

export function newAdResponseId(): AdResponseId {
  return adResponseIdSchema.parse(randomUUID());
}
