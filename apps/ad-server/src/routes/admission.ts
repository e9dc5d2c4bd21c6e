import { API_KEY_HEADER } from "@adrelay/contract";
import { addToRequestLog, sendProblem } from "@adrelay/service-kit";
import type { Request, Response } from "express";
import type { ApiKeys } from "../api-keys.ts";
import type { FaultOperation } from "../faults/fault-rules.ts";
import type { RateLimits } from "../rate-limits.ts";
import { sendStorageUnavailable } from "./answers.ts";

/** The publisher of a call with a good key; otherwise the refusal has been sent. */
export function admitKey(keys: ApiKeys, request: Request, response: Response): string | undefined {
  const standing = keys.standingOf(request.get(API_KEY_HEADER));
  switch (standing.kind) {
    case "good":
      return standing.publisher;
    case "revoked":
      sendProblem(response, "key_revoked");
      return undefined;
    case "unknown":
      sendProblem(response, "unauthenticated");
      return undefined;
    default:
      return standing satisfies never;
  }
}

export interface RateDeps {
  readonly rates: RateLimits;
}

/** Whether a publisher's call is within its rate; otherwise the refusal has been sent. */
export async function admitRate(
  { rates }: RateDeps,
  call: { readonly operation: FaultOperation; readonly publisher: string; readonly response: Response },
): Promise<boolean> {
  const admission = await rates.admit(call.operation, call.publisher);
  switch (admission.kind) {
    case "admitted":
      return true;
    case "limited":
      call.response.set("Retry-After", String(admission.retryAfterS));
      sendProblem(call.response, "rate_limited");
      return false;
    case "unavailable":
      addToRequestLog(call.response, { reason: admission.reason });
      sendStorageUnavailable(call.response);
      return false;
    default:
      return admission satisfies never;
  }
}
