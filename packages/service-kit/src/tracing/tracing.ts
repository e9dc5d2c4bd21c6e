/**
 * Spans, made by hand. Contexts are passed on as arguments, so that a part shows which trace it works for; with
 * tracing off a span costs an object, and what the caller sent still goes on to whoever is called.
 */
import type { TraceContext } from "@adrelay/contract";

/** Bounded values of our own making: nothing that a user wrote, no keys, no addresses (invariant 6). */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface SpanOptions {
  readonly name: string;
  readonly kind: "server" | "client" | "internal" | "consumer";
  readonly parent?: TraceContext | undefined;
  /** What this work comes from, without being part of it: the span begins a trace of its own that links there. */
  readonly follows?: TraceContext | undefined;
  readonly attributes?: SpanAttributes;
}

export interface Span {
  /** What goes on to whoever is called; undefined if there is no trace. */
  readonly context: TraceContext | undefined;
  /** The trace in which it is kept; undefined if it is not. */
  readonly recordedTraceId: string | undefined;
  set(attributes: SpanAttributes): void;
  /** Ends it, once: what comes later is dropped. */
  end(result?: { readonly isFault: boolean }): void;
}

export interface Tracing {
  startSpan(options: SpanOptions): Span;
  /** Sends what is left, bounded. */
  stop(): Promise<void>;
}

/** Records nothing and passes on what came. */
export const NO_TRACING: Tracing = {
  startSpan: ({ parent, follows }) => passingSpan(parent ?? follows),
  stop: () => Promise.resolve(),
};

/** Nothing to record, and nothing came. */
export const NO_SPAN: Span = { context: undefined, recordedTraceId: undefined, set: () => {}, end: () => {} };

export function passingSpan(context: TraceContext | undefined): Span {
  return context === undefined ? NO_SPAN : { ...NO_SPAN, context };
}
