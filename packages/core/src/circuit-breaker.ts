/**
 * The circuit breaker of one provider account, shared by all workers.
 *
 * The scripts in packages/store/src/circuit make these transitions. The table here is the oracle of
 * packages/store/test/circuits.test.ts, which compares the two for every phase and every event.
 */
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
