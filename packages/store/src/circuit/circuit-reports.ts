/** What workers report to a circuit breaker, and when the next probe is due after that. */
import type { PublisherId } from "@adrelay/contract";
import { type CircuitReason, HOLD_MAX_MS } from "@adrelay/core";

export type CircuitReport =
  | {
      readonly kind: "trip";
      readonly reason: CircuitReason;
      readonly holdMs: number;
      /** The publisher whose acknowledgments failed, if others of the account may get through. */
      readonly accused: PublisherId | undefined;
    }
  /** `reason`: undefined keeps the one that the breaker has. */
  | {
      readonly kind: "probe_failed";
      readonly reason: CircuitReason | undefined;
      readonly holdMs: number;
      /** Whose acknowledgment it was; undefined if the failure may be about that acknowledgment only. */
      readonly publisher: PublisherId | undefined;
    }
  /** `probe_now`: a worker has started. The next probe is due an interval after the latest one. */
  | { readonly kind: "probe_succeeded" | "probe_now" };

export interface CircuitRules {
  /** Least time between two probes while the breaker is open. */
  readonly probeIntervalMs: number;
  /** Most attempts per second in the first minute of a recovery. */
  readonly recoveryRatePerSecond: number;
}

/** A refused key is probed this many times less often, because only a person can correct it. */
const AUTH_PROBE_FACTOR = 12;
/** What circuit/report.lua is told of a report. */
export function argsOfReport(event: CircuitReport, rules: CircuitRules) {
  switch (event.kind) {
    case "trip":
      return { reason: event.reason, waitMs: waitAfter(event, rules), publisher: event.accused };
    case "probe_failed":
      return { reason: event.reason, waitMs: waitAfter(event, rules), publisher: event.publisher };
    case "probe_succeeded":
    case "probe_now":
      return { reason: undefined, waitMs: rules.probeIntervalMs, publisher: undefined };
    default:
      return event satisfies never;
  }
}

/** No probe is further off than this, whatever Redis' clock does. */
export function waitMaxMs({ probeIntervalMs }: CircuitRules): number {
  return Math.max(HOLD_MAX_MS, probeIntervalMs * AUTH_PROBE_FACTOR);
}

/** The time until the next probe. */
function waitAfter(
  { kind, reason, holdMs }: Extract<CircuitReport, { holdMs: number }>,
  { probeIntervalMs }: CircuitRules,
): number {
  switch (reason) {
    case undefined:
      return probeIntervalMs;
    case "throttled":
      return holdMs;
    case "auth":
      // The first probe comes soon, because the refusal may have been a mistake of the provider.
      return probeIntervalMs * (kind === "trip" ? 1 : AUTH_PROBE_FACTOR);
    case "outage":
      return Math.max(holdMs, probeIntervalMs);
    default:
      return reason satisfies never;
  }
}
