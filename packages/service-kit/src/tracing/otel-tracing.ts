/**
 * Spans by the OpenTelemetry SDK, sent as OTLP over HTTP. Loaded only where tracing is on: see `openTracing`.
 *
 * The exporter reads OTEL_EXPORTER_OTLP_*, the resource OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES. The queue is
 * bounded: while the collector is away, what doesn't fit is dropped.
 */
import type { TraceContext } from "@adrelay/contract";
import {
  type Span as OtelSpan,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { getNumberFromEnv, setGlobalErrorHandler, TraceState } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import { BatchSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import type { Logger } from "pino";
import { ADRELAY_VERSION } from "../process/describe-process.ts";
import { withDeadline } from "../process/with-deadline.ts";
import { samplerOfEnvironment } from "./sampler.ts";
import { passingSpan, type Span, type SpanAttributes, type SpanOptions, type Tracing } from "./tracing.ts";

const KINDS = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
  consumer: SpanKind.CONSUMER,
} as const satisfies Record<SpanOptions["kind"], SpanKind>;

const FLUSH_TIMEOUT_MS = 2000;
const TELL_AGAIN_MS = 60_000;
const VALUE_CHARS_MAX = 256;
/** Our member of `tracestate`: which request an attempt's trace comes from. */
const STATE_KEY = "adrelay";

export class OtelTracing implements Tracing {
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;

  constructor(service: string, log: Logger) {
    tellFaults(log);
    this.#provider = new TracerProvider({
      sampler: samplerOfEnvironment(),
      resource: defaultResource()
        .merge(resourceFromAttributes({ "service.name": service, "service.version": ADRELAY_VERSION }))
        .merge(detectResources({ detectors: [envDetector] })),
      spanLimits: { attributeValueLengthLimit: VALUE_CHARS_MAX },
      spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter(), ...batchLimits() })],
    });
    this.#tracer = this.#provider.getTracer("adrelay", ADRELAY_VERSION);
  }

  startSpan({ name, kind, parent, follows, attributes = {} }: SpanOptions): Span {
    if (follows !== undefined && !follows.isSampled) {
      // Whoever began that trace doesn't keep it: a new one would be half a story.
      return passingSpan(follows);
    }
    const links = follows === undefined ? [] : [{ context: toSpanContext(follows) }];
    const within =
      parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, toSpanContext(parent));
    const span = this.#tracer.startSpan(
      name,
      { kind: KINDS[kind], attributes: { ...attributes }, links },
      within,
    );
    const state = follows === undefined ? undefined : `${STATE_KEY}=${follows.traceId}-${follows.spanId}`;
    return wrap(span, state);
  }

  async stop(): Promise<void> {
    await withDeadline(
      this.#provider.shutdown().catch(() => {}),
      FLUSH_TIMEOUT_MS,
    );
  }
}

function toSpanContext({ traceId, spanId, isSampled, state }: TraceContext) {
  return {
    traceId,
    spanId,
    isRemote: true,
    traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    ...(state === undefined ? {} : { traceState: new TraceState(state) }),
  };
}

function wrap(span: OtelSpan, ownState: string | undefined): Span {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  const isSampled = (traceFlags & TraceFlags.SAMPLED) !== 0;
  const state = ownState ?? traceState?.serialize() ?? "";
  let isEnded = false;
  return {
    context: { traceId, spanId, isSampled, ...(state === "" ? {} : { state }) },
    recordedTraceId: isSampled ? traceId : undefined,
    set: (attributes: SpanAttributes) => {
      span.setAttributes({ ...attributes });
    },
    end: ({ isFault } = { isFault: false }) => {
      if (!isEnded) {
        isEnded = true;
        if (isFault) {
          span.setStatus({ code: SpanStatusCode.ERROR });
        }
        span.end();
      }
    },
  };
}

/** The standard settings of the batch; the SDK has the defaults. */
function batchLimits() {
  const settings = {
    scheduledDelayMillis: getNumberFromEnv("OTEL_BSP_SCHEDULE_DELAY"),
    exportTimeoutMillis: getNumberFromEnv("OTEL_BSP_EXPORT_TIMEOUT"),
    maxQueueSize: getNumberFromEnv("OTEL_BSP_MAX_QUEUE_SIZE"),
    maxExportBatchSize: getNumberFromEnv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"),
  };
  return Object.fromEntries(
    Object.entries(settings).filter((entry): entry is [string, number] => (entry[1] ?? 0) > 0),
  );
}

/** A collector that is away would be told of with every batch. */
function tellFaults(log: Logger): void {
  let toldAtMs = Number.NEGATIVE_INFINITY;
  setGlobalErrorHandler((fault) => {
    if (performance.now() - toldAtMs > TELL_AGAIN_MS) {
      toldAtMs = performance.now();
      log.warn({ event: "traces_not_sent", code: codeOf(fault) });
    }
  });
}

/** The fault's text can quote what the collector answered: its code says enough. */
function codeOf(fault: unknown): string | undefined {
  return fault instanceof Error && "code" in fault ? String(fault.code).slice(0, VALUE_CHARS_MAX) : undefined;
}
