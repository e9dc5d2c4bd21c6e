/** How an attempt shows in traces, and its request's trace in log lines. */
import { type DeliveryJob, parseTraceContext } from "@adrelay/contract";
import type { Settlement } from "@adrelay/ledger";
import type { Span, Tracing } from "@adrelay/service-kit";
import type { MadeAttempt } from "./settle-attempt.ts";

/** An attempt with its span. */
export interface TracedAttempt extends MadeAttempt {
  readonly span: Span;
}

/** Each attempt is a trace of its own: retries go on for days, and the request's trace is long over by then. */
export function startAttemptSpan(tracing: Tracing, { traceparent }: DeliveryJob): Span {
  return tracing.startSpan({
    name: "delivery attempt",
    kind: "consumer",
    follows: parseTraceContext(traceparent),
  });
}

/** What came of it; ends the span. */
export function describeAttempt(
  { span, job, begun, isProbe }: TracedAttempt,
  { event, code }: Settlement,
): void {
  span.set({
    "adrelay.outcome": event,
    "adrelay.code": code,
    "adrelay.attempt": begun.entry.attempts + 1,
    "adrelay.probe": isProbe,
    "adrelay.publisher": job.publisher,
    "adrelay.ad_response_id": job.adResponseId,
    "adrelay.request_id": job.requestId,
  });
  span.end({ isFault: event === "retry" || event === "die" });
}

/** The request's trace, and the attempt's own where it has one. */
export function traceIdsOf({ job, span }: TracedAttempt) {
  const traceId = parseTraceContext(job.traceparent)?.traceId;
  const own = span.context?.traceId;
  return { trace_id: traceId, attempt_trace_id: own === traceId ? undefined : own };
}
