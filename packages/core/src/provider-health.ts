/** What one attempt says about its provider account. What several of them say together: apps/worker/src/failure-detector.ts. */
import type { DeliveryOutcome } from "./delivery.ts";

export type ProviderHealth =
  /** Something got through. */
  | { readonly kind: "healthy" }
  /** It failed, and the fault may be the provider's. */
  | { readonly kind: "failing"; readonly holdMs: number }
  /** This acknowledgment was turned away; others may get through. */
  | { readonly kind: "blocking" }
  /** The key is refused. */
  | { readonly kind: "refusing" }
  /** The provider asked for a pause. */
  | { readonly kind: "throttled"; readonly holdMs: number };

/** The longest time for which answers can pause a whole account. Their own acknowledgments may wait longer. */
export const HOLD_MAX_MS = 300_000;

/**
 * Judges the provider by one attempt. An answer of the service about the acknowledgment (delivered, refused, 4xx,
 * recoverable_error) shows that the provider works and takes the key.
 */
export function judgeProvider(outcome: DeliveryOutcome): ProviderHealth {
  if (outcome.kind === "ambiguous") {
    return { kind: "failing", holdMs: 0 };
  }
  if (outcome.kind !== "retry" || outcome.code === "recoverable_error") {
    return { kind: "healthy" };
  }
  switch (outcome.blame) {
    case "key":
      return { kind: "refusing" };
    case "acknowledgment":
      return { kind: "blocking" };
    case "provider": {
      const holdMs = Math.min(outcome.retryAfterMs ?? 0, HOLD_MAX_MS);
      const isThrottled = outcome.code === "http_429" && holdMs > 0;
      return { kind: isThrottled ? "throttled" : "failing", holdMs };
    }
    default:
      return outcome.blame satisfies never;
  }
}
