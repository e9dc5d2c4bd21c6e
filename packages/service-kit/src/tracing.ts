/**
 * Spans, as the rest of the code sees them. A span's context is passed on as an argument, so that each part shows which
 * trace it works for. With tracing off a span records nothing, but the caller's context is still passed on to the
 * next service.
 */
import type { TraceContext } from "@adrelay/contract";
import type { Logger } from "pino";
import type { Environment } from "./settings.ts";

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

export interface TracingOptions {
  /** The `service.name` of the spans, unless OTEL_SERVICE_NAME sets another. */
  readonly service: string;
  readonly env: Environment;
  readonly log: Logger;
}

/**
 * Opens tracing if an OTLP endpoint is set; only then is the SDK loaded. OTEL_* settings that can't be used are logged
 * and do not prevent the start, because they may be meant for other programs on the same machine.
 */
export async function openTracing({ service, env, log }: TracingOptions): Promise<Tracing> {
  const endpoint = endpointOf(env);
  if (endpoint === undefined) {
    return NO_TRACING;
  }
  const tracing = URL.canParse(endpoint) ? await loadTracing(service, log) : undefined;
  if (tracing === undefined) {
    // The line doesn't say which setting is wrong, because an endpoint can contain a password.
    log.warn({ event: "tracing_failed", why: "the OTEL_* settings can't be used" });
  }
  return tracing ?? NO_TRACING;
}

async function loadTracing(service: string, log: Logger): Promise<Tracing | undefined> {
  try {
    const { OtelTracing } = await import("./otel-tracing.ts");
    return new OtelTracing(service, log);
  } catch {
    return undefined;
  }
}

/** The endpoint that traces are sent to; undefined if none is set or if tracing is switched off. */
function endpointOf(env: Environment): string | undefined {
  const read = (name: string) => (env[name] ?? "").trim();
  const isOff =
    read("OTEL_SDK_DISABLED").toLowerCase() === "true" ||
    read("OTEL_TRACES_EXPORTER").toLowerCase() === "none";
  const endpoint = read("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") || read("OTEL_EXPORTER_OTLP_ENDPOINT");
  return isOff || endpoint === "" ? undefined : endpoint;
}
