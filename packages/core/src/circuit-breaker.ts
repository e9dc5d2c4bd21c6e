/**
 * The circuit breaker of one provider account, shared by all workers.
 *
 * The scripts in packages/store/src/circuit make these transitions. The table here is the oracle of
 * packages/store/test/circuits.test.ts, which compares the two for every phase and every event.
 */
import type { DeliveryOutcome } from "./delivery.ts";

export const CIRCUIT_PHASES = [
  /** Attempts are made as they come. */
  "closed",
  /** Only probes are made. Due acknowledgments are parked, which costs them no attempt. */
  "open",
  /** A probe succeeded. Parked acknowledgments go out at a rate that grows. */
  "recovering",
] as const;
export type CircuitPhase = (typeof CIRCUIT_PHASES)[number];

export const CIRCUIT_EVENTS = ["trip", "probe_succeeded", "probe_failed", "drained"] as const;
export type CircuitEvent = (typeof CIRCUIT_EVENTS)[number];

/** Why a breaker is open: the provider is down, it refuses our key, or it asked for a pause. */
export const CIRCUIT_REASONS = ["outage", "auth", "throttled"] as const;
export type CircuitReason = (typeof CIRCUIT_REASONS)[number];

const TABLE: Record<CircuitPhase, Partial<Record<CircuitEvent, CircuitPhase>>> = {
  closed: { trip: "open" },
  // Attempts that were under way when it opened fail as well. They change nothing.
  open: { probe_succeeded: "recovering" },
  recovering: { trip: "open", drained: "closed" },
};

/** The phase after an event. Total: an event that means nothing in a phase changes nothing. */
export function decideCircuit(phase: CircuitPhase, event: CircuitEvent): CircuitPhase {
  return TABLE[phase][event] ?? phase;
}

/** What one attempt says about its provider, as opposed to its acknowledgment. */
export type ProviderHealth =
  | { readonly kind: "healthy" }
  /** A failure that may be the provider's. Only many of them show that it is down. */
  | { readonly kind: "failing"; readonly holdMs: number }
  /** `isCertain`: 401 is about the key (RFC 9110, section 15.5.2); 403 may be about this acknowledgment only. */
  | { readonly kind: "refusing"; readonly isCertain: boolean }
  /** The provider asked for a pause. */
  | { readonly kind: "throttled"; readonly holdMs: number };

/** The longest time for which one answer can pause a whole account. Its own acknowledgment may wait longer. */
export const HOLD_MAX_MS = 300_000;

/**
 * Judges the provider by one attempt. An answer about the acknowledgment (delivered, refused, 4xx,
 * recoverable_error) shows that the provider works.
 */
export function judgeProvider(outcome: DeliveryOutcome): ProviderHealth {
  if (outcome.kind === "ambiguous") {
    return { kind: "failing", holdMs: 0 };
  }
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
