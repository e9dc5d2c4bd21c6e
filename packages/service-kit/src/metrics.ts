import { setImmediate as nextTurn } from "node:timers/promises";
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

/** A metric that isn't in the registry: its samples are made while a scrape is written. */
export interface ScrapedMetric {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  samples(): Iterable<{ readonly labels: Readonly<Record<string, string>>; readonly value: number }>;
}

/** Everything that a scrape shows. */
export interface CollectedMetrics {
  readonly registry: Registry;
  readonly scraped?: Iterable<ScrapedMetric>;
}

interface RenderedMetrics {
  readonly contentType: string;
  readonly pieces: AsyncIterable<string>;
}

/** Samples that are written in one turn of the event loop. */
const SAMPLES_PER_PIECE = 1000;

/**
 * Writes all metrics in the format that the scraper accepts: OpenMetrics, which has exemplars, or Prometheus' text. Each
 * piece is made in its own turn of the event loop, so that a long scrape holds up no other request.
 */
export function renderMetrics(collected: CollectedMetrics, accept = ""): RenderedMetrics {
  const isOpen = acceptedFormat(accept) === "open_metrics";
  return {
    contentType: isOpen ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE,
    pieces: renderPieces(collected, isOpen),
  };
}

async function* renderPieces(
  { registry, scraped = [] }: CollectedMetrics,
  isOpen: boolean,
): AsyncIterable<string> {
  for (const { name } of registry.getMetricsAsArray()) {
    yield isOpen ? await renderOpen(registry.getSingleMetric(name)) : await renderText(registry, name);
    await nextTurn();
  }
  for (const metric of scraped) {
    for (const piece of renderScraped(metric, isOpen)) {
      yield piece;
      await nextTurn();
    }
  }
  if (isOpen) {
    yield OPEN_METRICS_END;
  }
}

async function renderText(registry: Registry, name: string): Promise<string> {
  return `${await registry.getSingleMetricAsString(name)}\n`;
}

const OPEN_METRICS_END = "# EOF\n";

async function renderOpen(metric: Metric | undefined): Promise<string> {
  const open = new Registry<OpenMetricsContentType>();
  open.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  open.registerMetric(shadowOf(metric));
  const text = await open.metrics();
  return text.slice(0, -OPEN_METRICS_END.length);
}

function* renderScraped({ name, help, type, samples }: ScrapedMetric, isOpen: boolean): Iterable<string> {
  const family = isOpen && type === "counter" ? name.replace(/_total$/, "") : name;
  let lines = [`# HELP ${family} ${help}`, `# TYPE ${family} ${type}`];
  for (const { labels, value } of samples()) {
    lines.push(`${name}${renderLabels(labels)} ${value}`);
    if (lines.length >= SAMPLES_PER_PIECE) {
      yield `${lines.join("\n")}\n`;
      lines = [];
    }
  }
  if (lines.length > 0) {
    yield `${lines.join("\n")}\n`;
  }
}

function renderLabels(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escapeLabel(value: string): string {
  return value.replace(/[\\"\n]/g, (character) => (character === "\n" ? "\\n" : `\\${character}`));
}

/** Writing OpenMetrics removes `_total` from a counter's name permanently. So a copy is written, not the counter itself. */
function shadowOf(metric: Metric | undefined): Metric {
  return Object.create(metric ?? null);
}
