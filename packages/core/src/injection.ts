/** What a reply to an injection means for the caller. */
import {
  type AdResponseId,
  type FilledResponse,
  faultsOf,
  faultText,
  filledResponseSchema,
  type InjectionOutcome,
  unfilledResponseSchema,
} from "@adrelay/contract";
import { type CallFailure, edgeFormFault, isServiceForm, type ProviderReply } from "./delivery.ts";

/** Why a caller was given a fallback. It is sent in `X-Adrelay-Fallback`, and is a metric label. */
export const FALLBACK_REASONS = [
  "timeout",
  "unreachable",
  "connection_lost",
  "provider_error",
  "unauthorized",
  "rate_limited",
  "malformed_answer",
  "unexpected_status",
  "overloaded",
] as const;
export type FallbackReason = (typeof FALLBACK_REASONS)[number];

/** What a provider's answer to an injection means for the caller (invariant 8). */
export type InjectionClass =
  | {
      readonly kind: "enhancement";
      readonly outcome: "ok";
      readonly adResponseId: AdResponseId;
      readonly answer: FilledResponse;
    }
  | {
      readonly kind: "enhancement";
      readonly outcome: Exclude<InjectionOutcome, "ok">;
      /** Undefined if the provider gave no usable one. There is nothing to acknowledge, so none is needed. */
      readonly adResponseId: AdResponseId | undefined;
    }
  /** The service itself found a fault in the request: its answer goes to the caller unchanged. */
  | { readonly kind: "callers_fault" }
  | {
      readonly kind: "fallback";
      readonly reason: FallbackReason;
      /** What is missing or wrong in the answer, without its values. Undefined if the reason says it all. */
      readonly answerFault: string | undefined;
    };

/** Callers need to know only that the provider can't be reached; operators see why. */
const REASON_OF_FAILURE: Readonly<Record<CallFailure, FallbackReason>> = {
  timeout: "timeout",
  unreachable: "unreachable",
  dns_failed: "unreachable",
  certificate_invalid: "unreachable",
  proxy_failed: "unreachable",
  connection_lost: "connection_lost",
  answer_too_large: "malformed_answer",
  overloaded: "overloaded",
};

/** Classifies one reply. Total: every status and every failure has a class. */
export function classifyInjection(reply: ProviderReply): InjectionClass {
  if (reply.kind === "failed") {
    const answerFault = reply.code === "answer_too_large" ? "body is too large" : undefined;
    return fallback(REASON_OF_FAILURE[reply.code], answerFault);
  }
  const { status, body } = reply;
  if (status === 200) {
    const parsed = filledResponseSchema.safeParse(body);
    return parsed.success
      ? { kind: "enhancement", outcome: "ok", adResponseId: parsed.data.ad_response_id, answer: parsed.data }
      : fallback("malformed_answer", faultText(faultsOf(parsed.error)));
  }
  if (status === 201 || status === 202) {
    const parsed = unfilledResponseSchema.safeParse(body);
    const outcome = status === 201 ? "rejected" : "no_fill";
    return parsed.success
      ? { kind: "enhancement", outcome, adResponseId: parsed.data.ad_response_id }
      : fallback("malformed_answer", faultText(faultsOf(parsed.error)));
  }
  if (status === 400 || status === 409 || status === 422) {
    return isServiceForm(body)
      ? { kind: "callers_fault" }
      : fallback("unexpected_status", faultOfForm(status, body));
  }
  return fallback(fallbackReason(status), `status is ${status}`);
}

function fallback(reason: FallbackReason, answerFault?: string): InjectionClass {
  return { kind: "fallback", reason, answerFault };
}

function faultOfForm(status: number, body: unknown): string {
  return edgeFormFault(body) ?? `body of a ${status} must be the service's own JSON object`;
}

function fallbackReason(status: number): FallbackReason {
  if (status >= 500) {
    return "provider_error";
  }
  switch (status) {
    case 401:
    case 403:
      return "unauthorized";
    case 429:
      return "rate_limited";
    default:
      return "unexpected_status";
  }
}
