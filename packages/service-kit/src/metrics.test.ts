import { Counter, Registry } from "prom-client";
import { expect, test } from "vitest";
import { createHistogramWithExemplars, renderMetrics, type ScrapedMetric } from "./metrics.ts";
import { exemplarOf, NO_TRACING, type Span } from "./tracing.ts";

const OPEN_METRICS = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3";
const TRACE = "0af7651916cd43dd8448eb211c80319c";

function someRegistry() {
  const registry = new Registry();
  const calls = new Counter({ name: "calls_total", help: "Calls.", registers: [registry] });
  const time = createHistogramWithExemplars(registry, {
    name: "time_seconds",
    help: "Time.",
    labelNames: ["operation"],
    buckets: [1],
  });
  return { registry, calls, time };
}

function spanIn(recordedTraceId: string | undefined): Span {
  return { ...NO_TRACING.startSpan({ name: "x", kind: "server" }), recordedTraceId };
}

async function render(registry: Registry, accept?: string, scraped: readonly ScrapedMetric[] = []) {
  const { contentType, pieces } = renderMetrics({ registry, scraped }, accept);
  const texts: string[] = [];
  for await (const piece of pieces) {
    texts.push(piece);
  }
  return { contentType, texts, text: texts.join("") };
}

test("a scraper that asks for OpenMetrics gets exemplars of recorded traces only", async () => {
  const { registry, time } = someRegistry();
  const observe = (operation: string, traceId: string | undefined) =>
    time.observe({ labels: { operation }, value: 0.5, exemplarLabels: exemplarOf(spanIn(traceId)) });
  observe("kept", TRACE);
  observe("not_kept", undefined);
  const { contentType, text } = await render(registry, OPEN_METRICS);
  expect(contentType).toMatch(/^application\/openmetrics-text/);
  expect(text).toMatch(
    new RegExp(`^time_seconds_bucket\\{le="1",operation="kept"\\} 1 # \\{trace_id="${TRACE}"\\} 0.5 `, "m"),
  );
  expect(text).toMatch(/^time_seconds_bucket\{le="1",operation="not_kept"\} 1$/m);
  expect(text).toMatch(/\n# EOF\n$/);
});

test("counters have the same names in both formats, whichever is asked for first", async () => {
  const { registry, calls } = someRegistry();
  for (const [accept, count] of [
    [OPEN_METRICS, 1],
    [undefined, 2],
    ["*/*", 3],
    [OPEN_METRICS, 4],
  ] as const) {
    calls.inc();
    const { text } = await render(registry, accept);
    expect(text).toMatch(new RegExp(`^calls_total ${count}$`, "m"));
    expect(text).not.toContain("total_total");
  }
});

test("a scraper that doesn't ask for OpenMetrics gets Prometheus' text without exemplars", async () => {
  const { registry, time } = someRegistry();
  time.observe({ labels: { operation: "x" }, value: 0.5, exemplarLabels: exemplarOf(spanIn(TRACE)) });
  const { contentType, text } = await render(registry, "*/*");
  expect(contentType).toMatch(/^text\/plain/);
  expect(text).not.toContain(TRACE);
});

const MANY = 2500;

test("a metric with many samples is written in several pieces, in both formats", async () => {
  const { registry } = someRegistry();
  const many: ScrapedMetric = {
    name: "many_total",
    help: "Many.",
    type: "counter",
    samples: () =>
      Array.from({ length: MANY }, (_, at) => ({ labels: { at: `${at}`, odd: 'a"\\\n' }, value: at })),
  };
  const [plain, open] = [await render(registry, "*/*", [many]), await render(registry, OPEN_METRICS, [many])];
  for (const { texts, text } of [plain, open]) {
    expect(Math.max(...texts.map((piece) => piece.split("\n").length))).toBeLessThan(1100);
    expect(text.match(/^many_total\{at="\d+",odd="a\\"\\\\\\n"\} \d+$/gm)).toHaveLength(MANY);
  }
  expect(plain.text).toContain("# TYPE many_total counter\n");
  expect(open.text).toContain("# TYPE many counter\n");
  expect(open.text.match(/# EOF\n/g)).toHaveLength(1);
  expect(open.text).toMatch(/# EOF\n$/);
});
