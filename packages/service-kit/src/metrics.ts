import {
  collectDefaultMetrics,
  Histogram,
  type HistogramConfiguration,
  type Metric,
  type OpenMetricsContentType,
  Registry,
} from "prom-client";
import type { Span } from "./tracing/tracing.ts";

/** A registry of one process, with Node's default metrics in it. */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}

/**
 * A histogram whose samples can lead to traces: see `exemplarOf`. The library makes them for OpenMetrics' registries
 * alone; ours is one for the time of a scrape, so the histogram is made first and registered then.
 */
export function createHistogramWithExemplars<T extends string>(
  registry: Registry,
  config: Omit<HistogramConfiguration<T>, "registers" | "enableExemplars">,
): Histogram<T> {
  const histogram = new Histogram<T>({ ...config, registers: [], enableExemplars: true });
  registry.registerMetric(histogram);
  return histogram;
}

export interface RenderedMetrics {
  readonly contentType: string;
  readonly text: string;
}

/** All metrics as a scraper wants them: OpenMetrics, which has exemplars, if it asks for that; else Prometheus' text. */
export async function renderMetrics(registry: Registry, accept = ""): Promise<RenderedMetrics> {
  if (!/\bapplication\/openmetrics-text\b/.test(accept)) {
    return { contentType: registry.contentType, text: await registry.metrics() };
  }
  const open = new Registry<OpenMetricsContentType>();
  open.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  for (const { name } of registry.getMetricsAsArray()) {
    open.registerMetric(shadowOf(registry.getSingleMetric(name)));
  }
  return { contentType: open.contentType, text: await open.metrics() };
}

/** To write OpenMetrics takes `_total` off a counter's name for good: so it is taken off a shadow of the counter. */
function shadowOf(metric: Metric | undefined): Metric {
  return Object.create(metric ?? null);
}

/** Labels that lead from a sample to the trace in which it was taken, if that is kept. */
export function exemplarOf({ recordedTraceId }: Span): Record<string, string> {
  return recordedTraceId === undefined ? {} : { trace_id: recordedTraceId };
}
