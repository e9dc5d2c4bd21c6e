/** The one log line of an attempt, and its metrics, after it was booked. */
import { parseTraceContext } from "@adrelay/contract";
import type { SettledAttempt, Settlement } from "@adrelay/store";
import type { Logger } from "pino";
import { attemptLabelOf, type WorkerMetrics } from "./worker-metrics.ts";

export interface ReportDeps {
  readonly metrics: WorkerMetrics;
  readonly log: Logger;
}

export function reportAttempt({ log, metrics }: ReportDeps, { due, made, booked }: SettledAttempt): void {
  const { settlement, isProbe, trace } = made;
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
    label: labelOf(settlement),
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
