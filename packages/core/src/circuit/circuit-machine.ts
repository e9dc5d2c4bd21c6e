/**
 * The circuit of one provider account, shared by all workers. The ledger's gate scripts carry these
 * transitions out; a test walks every phase with every event through both and compares.
 */

export const CIRCUIT_PHASES = [
  /** Attempts go out as they come. */
  "closed",
  /** None goes out but a probe now and then; what is due waits, at no cost of attempts. */
  "open",
  /** A probe got through: what waited goes out at a rate that grows. */
  "recovering",
] as const;
export type CircuitPhase = (typeof CIRCUIT_PHASES)[number];

export const CIRCUIT_EVENTS = ["trip", "probe_succeeded", "probe_failed", "drained"] as const;
export type CircuitEvent = (typeof CIRCUIT_EVENTS)[number];

/** Why a circuit is open: the provider is down, it refuses our key, or it asked to be left alone. */
export const CIRCUIT_REASONS = ["outage", "auth", "throttled"] as const;
export type CircuitReason = (typeof CIRCUIT_REASONS)[number];

const TABLE: Record<CircuitPhase, Partial<Record<CircuitEvent, CircuitPhase>>> = {
  closed: { trip: "open" },
  // Attempts that were under way when it opened fail, too: that is no news.
  open: { probe_succeeded: "recovering" },
  recovering: { trip: "open", drained: "closed" },
};

/** What an event makes of a phase. Total: an event that means nothing there changes nothing. */
export function decideCircuit(phase: CircuitPhase, event: CircuitEvent): CircuitPhase {
  return TABLE[phase][event] ?? phase;
}
