import {
  collectDefaultMetrics,
  Histogram,
  type HistogramConfiguration,
  type Metric,
  type OpenMetricsContentType,
  Registry,
} from "prom-client";
import { acceptedFormat } from "./accepted-format.ts";

/** Makes the metrics registry of a process, with Node's default metrics in it. */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}

/**
 * Makes a histogram whose samples can carry exemplars: see `exemplarOf`. prom-client refuses to make one in a registry of
 * Prometheus' text format, and ours is of OpenMetrics only during a scrape. So the histogram is registered afterwards.
 */
export function createHistogramWithExemplars<T extends string>(
  registry: Registry,
  config: Omit<HistogramConfiguration<T>, "registers" | "enableExemplars">,
): Histogram<T> {
  const histogram = new Histogram<T>({ ...config, registers: [], enableExemplars: true });
  registry.registerMetric(histogram);
  return histogram;
}

interface RenderedMetrics {
  readonly contentType: string;
  readonly text: string;
}

/** Writes all metrics in the format that the scraper accepts: OpenMetrics, which has exemplars, or Prometheus' text. */
export async function renderMetrics(registry: Registry, accept = ""): Promise<RenderedMetrics> {
  if (acceptedFormat(accept) === "text") {
    return { contentType: registry.contentType, text: await registry.metrics() };
  }
  const open = new Registry<OpenMetricsContentType>();
  open.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  for (const { name } of registry.getMetricsAsArray()) {
    open.registerMetric(shadowOf(registry.getSingleMetric(name)));
  }
  return { contentType: open.contentType, text: await open.metrics() };
}

/** Writing OpenMetrics removes `_total` from a counter's name permanently. So a copy is written, not the counter itself. */
function shadowOf(metric: Metric | undefined): Metric {
  return Object.create(metric ?? null);
}
