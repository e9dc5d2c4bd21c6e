/**
 * The worker's own metrics, and the one log line of each attempt. The ledger's metrics are the same on every replica
 * (packages/store/src/metrics).
 */
import { parseTraceContext } from "@adrelay/contract";
import { createHistogramWithExemplars, ProviderDurations } from "@adrelay/service-kit";
import type { RewriteRecord, SettledAttempt, Settlement } from "@adrelay/store";
import type { Logger } from "pino";
import { Counter, Gauge, type Histogram, type Registry } from "prom-client";

export interface WorkerMetrics {
  /** outcome: deliver, refuse, retry, die. */
  readonly attempts: Counter<"outcome">;
  readonly providerDurations: ProviderDurations;
  /** From acceptance, or replay, to delivery. */
  readonly lag: Histogram;
  /** Called with what is known of the rewrites of Redis' files. */
  reportRewrites(record: RewriteRecord): void;
}

/** The label of an outcome in `adrelay_delivery_attempts_total`. An ambiguous attempt is repeated, so it counts as a retry. */
function attemptLabelOf({ event }: Settlement): "deliver" | "refuse" | "retry" | "die" {
  return event === "ambiguous" ? "retry" : event;
}

export interface WorkerMetricsOptions {
  /** How many provider accounts have their own series. */
  readonly providersMax: number;
  readonly deadLetterRetentionMs: number;
}

export function createWorkerMetrics(
  registry: Registry,
  { providersMax, deadLetterRetentionMs }: WorkerMetricsOptions,
): WorkerMetrics {
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
  const retention = new Gauge({
    name: "adrelay_dead_letter_retention_seconds",
    help: "The age at which this process lets dead letters expire: DEAD_LETTER_RETENTION.",
    registers,
  });
  retention.set(deadLetterRetentionMs / 1000);
  return {
    attempts,
    reportRewrites: makeReportRewrites(registry),
    providerDurations: new ProviderDurations(registry, providersMax),
    lag: createHistogramWithExemplars(registry, {
      name: "adrelay_acknowledgment_delivery_lag_seconds",
      help: "Time from an acknowledgment's acceptance, or replay, to its delivery.",
      buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 30, 120, 600, 3600, 14_400, 86_400, 259_200],
    }),
  };
}

export interface PayloadBytes {
  readonly bytesMax: number;
  heldBytes(): number;
}

/** Shows at each scrape how many bytes of large bodies are held, and how many may be. */
export function reportPayloads(registry: Registry, { heldBytes, bytesMax }: PayloadBytes): void {
  const registers = [registry];
  new Gauge({
    name: "adrelay_delivery_payload_bytes",
    help: "Bytes of bodies above 8 kB that this worker holds for its attempts.",
    registers,
    collect() {
      this.set(heldBytes());
    },
  });
  const max = new Gauge({
    name: "adrelay_delivery_payload_max_bytes",
    help: "The most bytes of bodies above 8 kB that this worker holds for its attempts: WORKER_PAYLOAD_BYTES.",
    registers,
  });
  max.set(bytesMax);
}

function makeReportRewrites(registry: Registry): (record: RewriteRecord) => void {
  const registers = [registry];
  const last = new Gauge({
    name: "adrelay_redis_last_rewrite_timestamp_seconds",
    help: "Start of the latest rewrite of Redis' files that succeeded, or when workers began to look after it; 0 if unknown.",
    registers,
  });
  const interval = new Gauge({
    name: "adrelay_redis_rewrite_interval_seconds",
    help: "How often workers have Redis rewrite its files: AOF_REWRITE_INTERVAL. 0: only when an operator asks.",
    registers,
  });
  return ({ sinceMs = 0, finishedMs = sinceMs, intervalMs }) => {
    last.set(finishedMs / 1000);
    interval.set(intervalMs / 1000);
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
  const { settlement, isProbe, cause, providerError, answerFault, trace } = made;
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
    provider_error: providerError,
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
