/**
 * The worker's own metrics, and the one log line of each attempt. The ledger's metrics are the same on every replica
 * (packages/store/src/metrics).
 */
import { parseTraceContext } from "@adrelay/contract";
import { CIRCUIT_REASONS } from "@adrelay/core";
import { createHistogramWithExemplars } from "@adrelay/service-kit";
import type { CircuitState, SettledAttempt, Settlement } from "@adrelay/store";
import type { Logger } from "pino";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";

export interface WorkerMetrics {
  /** outcome: deliver, refuse, retry, die. */
  readonly attempts: Counter<"outcome">;
  /** operation: acknowledge. outcome: the class of the provider's status, or why there was no answer. */
  readonly providerDuration: Histogram<"operation" | "outcome">;
  /** From acceptance, or replay, to delivery. */
  readonly lag: Histogram;
}

/** The label of an outcome in `adrelay_delivery_attempts_total`. An ambiguous attempt is repeated, so it counts as a retry. */
function attemptLabelOf({ event }: Settlement): "deliver" | "refuse" | "retry" | "die" {
  return event === "ambiguous" ? "retry" : event;
}

export function createWorkerMetrics(registry: Registry): WorkerMetrics {
  const registers = [registry];
  const attempts = new Counter({
    name: "adrelay_delivery_attempts_total",
    help: "Attempts at delivery by this process, by outcome: deliver, refuse, retry, die.",
    labelNames: ["outcome"],
    registers,
  });
  for (const outcome of ["deliver", "refuse", "retry", "die"]) {
    attempts.inc({ outcome }, 0);
  }
  return {
    attempts,
    providerDuration: new Histogram({
      name: "adrelay_provider_request_duration_seconds",
      help: "Time of a call to the ad service, body included, by status class (2xx) or why there was no answer.",
      labelNames: ["operation", "outcome"],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30],
      registers,
    }),
    lag: createHistogramWithExemplars(registry, {
      name: "adrelay_acknowledgment_delivery_lag_seconds",
      help: "Time from an acknowledgment's acceptance, or replay, to its delivery.",
      buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 30, 120, 600, 3600, 14_400, 86_400, 259_200],
    }),
  };
}

export interface ReportDeps {
  readonly metrics: WorkerMetrics;
  readonly log: Logger;
}

/** Makes the function that writes the one log line of an attempt, and its metrics, after it was booked. */
export function makeReportAttempt(deps: ReportDeps): (settled: SettledAttempt) => void {
  return (settled) => reportAttempt(deps, settled);
}

function reportAttempt({ log, metrics }: ReportDeps, { due, made, booked }: SettledAttempt): void {
  const { settlement, isProbe, cause, answerFault, trace } = made;
  const { event, code, durationMs } = settlement;
  const { job, entry, nowMs } = due;
  metrics.attempts.inc({ outcome: attemptLabelOf(settlement) });
  if (event === "deliver" && booked === "booked" && entry.queuedAtMs !== undefined) {
    const value = (nowMs + durationMs - entry.queuedAtMs) / 1000;
    const exemplarLabels = trace.recorded === undefined ? {} : { trace_id: trace.recorded };
    metrics.lag.observe({ value, exemplarLabels });
  }
  const requestTraceId = parseTraceContext(job.traceparent)?.traceId;
  const isFinal = event === "deliver" || event === "refuse";
  log[isFinal ? "info" : "warn"]({
    event: "attempt",
    outcome: event,
    code,
    cause,
    label: labelOf(settlement),
    answer_fault: answerFault,
    booked,
    ad_response_id: job.adResponseId,
    ad_ack_id: job.adAckId,
    publisher: job.publisher,
    request_id: job.requestId,
    trace_id: requestTraceId,
    // Only if the attempt has its own trace.
    attempt_trace_id: trace.own === requestTraceId ? undefined : trace.own,
    attempt: entry.attempts + 1,
    probe: isProbe,
    duration_ms: Math.round(durationMs),
    next_attempt_ms: nextAttemptMs(settlement),
  });
}

/** The verdict of a delivery, the reason of a death. */
function labelOf(settlement: Settlement): string {
  switch (settlement.event) {
    case "deliver":
      return settlement.verdict;
    case "die":
      return settlement.reason;
    case "refuse":
    case "retry":
    case "ambiguous":
      return "";
    default:
      return settlement satisfies never;
  }
}

/** 0 for a parked acknowledgment: its next attempt doesn't depend on time. */
function nextAttemptMs(settlement: Settlement): number | undefined {
  if (settlement.event !== "retry" && settlement.event !== "ambiguous") {
    return undefined;
  }
  return settlement.next.kind === "after_delay" ? settlement.next.delayMs : 0;
}

/** The circuit breakers as this process saw them last. */
export interface CircuitMetrics {
  show(provider: string, state: CircuitState & { readonly slots: number }): void;
}

/** provider: the configured accounts, each by the id of one of its publishers. reason: outage, auth, throttled. */
export function createCircuitMetrics(
  registry: Registry,
  providers: readonly string[],
  slotsMax: number,
): CircuitMetrics {
  const registers = [registry];
  const open = new Gauge({
    name: "adrelay_provider_circuit_open",
    help: "1 while only probes go to the provider, by reason: outage, auth (it refuses our key), throttled.",
    labelNames: ["provider", "reason"],
    registers,
  });
  const parked = new Gauge({
    name: "adrelay_provider_waiting_acknowledgments",
    help: "Parked acknowledgments: queued, and waiting until their circuit breaker lets them go.",
    labelNames: ["provider"],
    registers,
  });
  const slots = new Gauge({
    name: "adrelay_delivery_concurrency_limit",
    help: "How many attempts this process may make at the same time at the provider: fewer while it fails under load.",
    labelNames: ["provider"],
    registers,
  });
  const show: CircuitMetrics["show"] = (provider, state) => {
    for (const reason of CIRCUIT_REASONS) {
      open.set({ provider, reason }, state.phase === "open" && state.reason === reason ? 1 : 0);
    }
    parked.set({ provider }, state.parked);
    slots.set({ provider }, state.slots);
  };
  for (const provider of providers) {
    show(provider, {
      phase: "closed",
      reason: undefined,
      sinceMs: 0,
      nextProbeAtMs: 0,
      parked: 0,
      slots: slotsMax,
    });
  }
  return { show };
}
