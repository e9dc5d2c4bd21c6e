/** What a reply to an injection means for the caller. */
import {
  type AdResponseId,
  filledResponseSchema,
  type InjectionOutcome,
  unfilledResponseSchema,
} from "@adrelay/contract";
import { type CallFailure, isServiceForm, type ProviderReply } from "./delivery.ts";

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
] as const;
export type FallbackReason = (typeof FALLBACK_REASONS)[number];

/** What a provider's answer to an injection means for the caller (invariant 8). */
export type InjectionClass =
  | { readonly kind: "enhancement"; readonly outcome: InjectionOutcome; readonly adResponseId: AdResponseId }
  /** The service itself found a fault in the request: its answer goes to the caller unchanged. */
  | { readonly kind: "callers_fault" }
  | { readonly kind: "fallback"; readonly reason: FallbackReason };

/** Callers need to know only that the provider can't be reached; operators see why. */
const REASON_OF_FAILURE: Readonly<Record<CallFailure, FallbackReason>> = {
  timeout: "timeout",
  unreachable: "unreachable",
  dns_failed: "unreachable",
  certificate_invalid: "unreachable",
  proxy_failed: "unreachable",
  connection_lost: "connection_lost",
  answer_too_large: "malformed_answer",
};

/** Classifies one reply. Total: every status and every failure has a class. */
export function classifyInjection(reply: ProviderReply): InjectionClass {
  if (reply.kind === "failed") {
    return { kind: "fallback", reason: REASON_OF_FAILURE[reply.code] };
  }
  const { status } = reply;
  if (status === 200 || status === 201 || status === 202) {
    return classifyEnhancement(status, reply.body);
  }
  if ((status === 400 || status === 409 || status === 422) && isServiceForm(reply.body)) {
    return { kind: "callers_fault" };
  }
  return { kind: "fallback", reason: fallbackReason(status) };
}

function classifyEnhancement(status: 200 | 201 | 202, body: unknown): InjectionClass {
  const schema = status === 200 ? filledResponseSchema : unfilledResponseSchema;
  const parsed = schema.safeParse(body);
  if (!parsed.success) {
    return { kind: "fallback", reason: "malformed_answer" };
  }
  const outcome = ({ 200: "ok", 201: "rejected", 202: "no_fill" } as const)[status];
  return { kind: "enhancement", outcome, adResponseId: parsed.data.ad_response_id };
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
