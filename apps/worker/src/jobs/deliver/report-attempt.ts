import type { BookedCode, Settlement } from "@adrelay/ledger";
import { exemplarOf } from "@adrelay/service-kit";
import type { Logger } from "pino";
import type { WorkerMetrics } from "../../worker-metrics.ts";
import { describeAttempt, type TracedAttempt, traceIdsOf } from "./attempt-span.ts";

export interface ReportDeps {
  readonly metrics: WorkerMetrics;
  readonly log: Logger;
}

/** An attempt and what is to be booked of it. */
export interface DecidedAttempt<Word extends Settlement = Settlement> {
  readonly made: TracedAttempt;
  readonly settlement: Word;
}

/** The one line of an attempt, its metrics and its span: once it is booked. */
export function reportAttempt(
  { log, metrics }: ReportDeps,
  { made, settlement }: DecidedAttempt,
  booked: BookedCode,
): void {
  const { event, label, code, durationMs, delayMs } = settlement;
  const { job, isProbe, begun } = made;
  const { entry, nowMs } = begun;
  describeAttempt(made, settlement);
  metrics.attempts.inc({ outcome: event });
  if (event === "deliver" && booked === "booked" && entry.queuedAtMs !== undefined) {
    const value = (nowMs + durationMs - entry.queuedAtMs) / 1000;
    metrics.lag.observe({ value, exemplarLabels: exemplarOf(made.span) });
  }
  const isDegraded = event === "retry" || event === "die";
  log[isDegraded ? "warn" : "info"]({
    event: "attempt",
    outcome: event,
    code,
    label,
    booked,
    ad_response_id: job.adResponseId,
    ad_ack_id: job.adAckId,
    publisher: job.publisher,
    request_id: job.requestId,
    ...traceIdsOf(made),
    attempt: entry.attempts + 1,
    probe: isProbe,
    duration_ms: Math.round(durationMs),
    next_attempt_ms: event === "retry" ? delayMs : undefined,
  });
}
