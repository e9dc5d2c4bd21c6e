/**
 * Spans, as the rest of the code sees them. A span's context is passed on as an argument, so that each part shows which
 * trace it works for. With tracing off a span records nothing, but the caller's context is still passed on to the
 * next service.
 */
import type { TraceContext } from "@adrelay/contract";

/** Values of a bounded set that we choose: no user's text, no keys, no addresses (invariant 6). */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** How a span starts. */
export interface SpanOptions {
  readonly name: string;
  readonly kind: "server" | "client" | "internal" | "consumer";
  readonly parent?: TraceContext | undefined;
  /** The span that caused this work without being its parent: the new span starts a new trace and links to it. */
  readonly follows?: TraceContext | undefined;
  readonly attributes?: SpanAttributes;
}

/** One operation in a trace. */
export interface Span {
  /** What is passed on to a service that we call; undefined if there is no trace. */
  readonly context: TraceContext | undefined;
  /** The id of the trace if it is recorded, else undefined. */
  readonly recordedTraceId: string | undefined;
  set(attributes: SpanAttributes): void;
  /** Ends the span. Further calls do nothing. */
  end(result?: { readonly isFault: boolean }): void;
}

/** Makes spans: with the OpenTelemetry SDK, or spans that record nothing. */
export interface Tracing {
  startSpan(options: SpanOptions): Span;
  /** Sends the spans that are left, within a time limit. */
  stop(): Promise<void>;
}

/** Records nothing, but passes on the caller's context. */
export const NO_TRACING: Tracing = {
  startSpan: ({ parent, follows }) => passingSpan(parent ?? follows),
  stop: () => Promise.resolve(),
};

/** A span that records nothing and has no context. */
export const NO_SPAN: Span = { context: undefined, recordedTraceId: undefined, set: () => {}, end: () => {} };

/** A span that records nothing and passes a context on. */
function passingSpan(context: TraceContext | undefined): Span {
  return context === undefined ? NO_SPAN : { ...NO_SPAN, context };
}

/** The exemplar labels that lead from a sample to its trace; empty if the trace is not recorded. */
export function exemplarOf({ recordedTraceId }: Span): Record<string, string> {
  return recordedTraceId === undefined ? {} : { trace_id: recordedTraceId };
}
