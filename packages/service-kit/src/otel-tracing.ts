/**
 * Spans made with the OpenTelemetry SDK and sent as OTLP over HTTP. Loaded only if tracing is on: see `openTracing`.
 *
 * The SDK reads the standard variables on its own: the exporter reads OTEL_EXPORTER_OTLP_*, the resource reads
 * OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES. The queue of spans is bounded: while the collector is away, spans
 * that don't fit are dropped.
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
import { getNumberFromEnv, getStringFromEnv, setGlobalErrorHandler, TraceState } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Logger } from "pino";
import { atMostEvery } from "./at-most-every.ts";
import { withDeadline } from "./deadline.ts";
import { ADRELAY_VERSION } from "./service.ts";
import type { Span, SpanAttributes, SpanOptions, Tracing } from "./tracing.ts";

const KINDS = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
  consumer: SpanKind.CONSUMER,
} as const satisfies Record<SpanOptions["kind"], SpanKind>;

const FLUSH_TIMEOUT_MS = 2000;
const FAULT_LOG_INTERVAL_MS = 60_000;
const VALUE_CHARS_MAX = 256;
/** Our member of `tracestate`: the span that the trace of a delivery attempt follows. */
const STATE_KEY = "adrelay";

/** Tracing with the SDK. Spans are sent in batches; `stop` sends the rest. */
export class OtelTracing implements Tracing {
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;

  constructor(service: string, log: Logger) {
    logFaults(log);
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
      // The trace that this work comes from isn't recorded: a trace of this work only would lack its beginning.
      return { context: follows, recordedTraceId: undefined, set: () => {}, end: () => {} };
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

/** Reads the standard settings of a batch. The SDK has the defaults. */
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

/** Logs a failed export at most once a minute: while the collector is away, every batch fails. */
function logFaults(log: Logger): void {
  setGlobalErrorHandler(
    atMostEvery(FAULT_LOG_INTERVAL_MS, (fault: unknown) => {
      log.warn({ event: "traces_not_sent", code: codeOf(fault) });
    }),
  );
}

/** Only the code is logged, because the message can quote what the collector answered. */
function codeOf(fault: unknown): string | undefined {
  return fault instanceof Error && "code" in fault ? String(fault.code).slice(0, VALUE_CHARS_MAX) : undefined;
}

/** Reads OTEL_TRACES_SAMPLER. An unknown value counts as not set, as the OpenTelemetry specification says. */
function samplerOfEnvironment(): Sampler {
  const ratio = () => new TraceIdRatioBasedSampler(getNumberFromEnv("OTEL_TRACES_SAMPLER_ARG") ?? 1);
  switch (getStringFromEnv("OTEL_TRACES_SAMPLER")) {
    case "always_on":
      return new AlwaysOnSampler();
    case "always_off":
      return new AlwaysOffSampler();
    case "traceidratio":
      return ratio();
    case "parentbased_traceidratio":
      return new ParentBasedSampler({ root: ratio() });
    case "parentbased_always_off":
      return new ParentBasedSampler({ root: new AlwaysOffSampler() });
    default:
      return new ParentBasedSampler({ root: new AlwaysOnSampler() });
  }
}
