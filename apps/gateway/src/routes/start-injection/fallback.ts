import { randomUUID } from "node:crypto";
import {
  type AdResponseId,
  adResponseIdSchema,
  type EnhancementResponse,
  type ErrorCode,
} from "@adrelay/contract";
import type { FallbackReason } from "@adrelay/core";

/** An answer of our own in the service's form: no ad, the chat goes on with the user's prompt. */
export interface Fallback {
  readonly adResponseId: AdResponseId;
  readonly body: EnhancementResponse;
}

export function makeFallback(elapsedMs: number): Fallback {
  const adResponseId = adResponseIdSchema.parse(randomUUID());
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

/** The error that stands for a fallback where INJECTION_FALLBACK=error. */
export function fallbackError(reason: FallbackReason): ErrorCode {
  return reason === "timeout" ? "provider_timeout" : "provider_unavailable";
}
