import { type PublisherId, publisherIdSchema } from "@adrelay/contract";
import type { Publisher } from "@adrelay/provider";
import { Counter, Registry } from "prom-client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { PublisherSeries } from "./publisher-series.ts";

const DAY_MS = 86_400_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

function publisher(name: string): Publisher {
  const id: PublisherId = publisherIdSchema.parse(name);
  return { id, name, keys: [], account: { url: "http://127.0.0.1:9", apiKey: "k", apiKeyHeader: "X-Key" } };
}

function setup(names: readonly string[], publishersMax: number) {
  const publishers = { current: names.map(publisher) };
  const series = new PublisherSeries({ publishers, publishersMax });
  const registry = new Registry();
  const calls = new Counter({
    name: "calls",
    help: "Calls.",
    labelNames: ["publisher", "status"],
    registers: [registry],
    collect: () => series.refresh(),
  });
  series.addCounter(calls, [{ status: "2xx" }, { status: "5xx" }]);
  const load = async () =>
    (await calls.get()).values.map(({ labels, value }) => `${labels.publisher} ${labels.status} ${value}`);
  return { publishers, series, calls, load };
}

test("all configured publishers begin at zero, also those that come later", async () => {
  const { publishers, load } = setup(["a"], 3);
  expect(await load()).toEqual(["a 2xx 0", "a 5xx 0"]);
  publishers.current.push(publisher("b"));
  expect(await load()).toEqual(["a 2xx 0", "a 5xx 0", "b 2xx 0", "b 5xx 0"]);
});

test("if there are too many publishers, those without own series share one", async () => {
  const { series, calls, load } = setup(["a", "b"], 1);
  for (const name of ["b", "a", "b"]) {
    calls.inc({ publisher: series.labelOf(name), status: "2xx" });
  }
  expect(await load()).toEqual(["other 2xx 1", "other 5xx 0", "b 2xx 2", "b 5xx 0"]);
});

test("a publisher that was silent for a day loses its series in every metric", async () => {
  const { series, calls, load } = setup(["a", "b"], 1);
  calls.inc({ publisher: series.labelOf("a"), status: "2xx" });
  vi.advanceTimersByTime(DAY_MS + 1);
  expect(await load()).toEqual(["other 2xx 0", "other 5xx 0"]);
});
