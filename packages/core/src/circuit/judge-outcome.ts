import type { DeliveryOutcome } from "../delivery/classify-delivery.ts";

/** What one attempt says about its provider, not about its acknowledgment. */
export type ProviderHealth =
  | { readonly kind: "healthy" }
  /** One of these alone proves nothing; many do. */
  | { readonly kind: "failing"; readonly holdMs: number }
  /** `isCertain`: 401 is about the key (RFC 9110, section 15.5.2); 403 may be about this acknowledgment alone. */
  | { readonly kind: "refusing"; readonly isCertain: boolean }
  /** The provider asked to be left alone for a while. */
  | { readonly kind: "throttled"; readonly holdMs: number };

/** The longest time that one answer can keep a whole account waiting; its own acknowledgment may wait longer. */
export const HOLD_MAX_MS = 300_000;

/**
 * Judges the provider by one attempt. An answer that is about the acknowledgment (delivered, refused, 4xx,
 * recoverable_error) shows that the provider works.
 */
export function judgeProvider(outcome: DeliveryOutcome): ProviderHealth {
  if (outcome.kind !== "retry" || outcome.code === "recoverable_error") {
    return { kind: "healthy" };
  }
  const holdMs = Math.min(outcome.retryAfterMs ?? 0, HOLD_MAX_MS);
  if (outcome.pace === "slow") {
    return { kind: "refusing", isCertain: outcome.code === "http_401" };
  }
  return outcome.code === "http_429" && holdMs > 0
    ? { kind: "throttled", holdMs }
    : { kind: "failing", holdMs };
}
