import { COUNTED_STATES, publisherIdSchema } from "@adrelay/contract";
import { DEAD_REASONS } from "@adrelay/core";
import { expect, test } from "vitest";
import { TOTAL_PLACES } from "./ledger-counters.ts";
import { LedgerMetrics } from "./ledger-metrics.ts";
import type { PublisherCounts } from "./snapshot.ts";

const DAY_MS = 86_400_000;
const DEPTHS = { waiting: 0, active: 0, delayed: 0, failed: 0 };

interface Numbers {
  readonly accepted?: number;
  readonly queued?: number;
}

function countsOf(name: string, { accepted = 0, queued = 0 }: Numbers): PublisherCounts {
  return {
    publisher: publisherIdSchema.parse(name),
    states: COUNTED_STATES.map((state) => (state === "queued" ? queued : 0)),
    totals: TOTAL_PLACES.map(({ source }) => (source === "accepted" ? accepted : 0)),
    deadLetters: DEAD_REASONS.map(() => 0),
    storedBytes: [queued * 1000, 0, 0],
    imbalance: 0,
    openTurns: 0,
    text: "",
  };
}

/** A process whose scrapes show these counts. Each returns the accepted acknowledgments by publisher. */
function setup(publishers: readonly string[], publishersMax: number) {
  const metrics = new LedgerMetrics({ listPublishers: () => publishers, publishersMax });
  const show = (numbers: Readonly<Record<string, Numbers>>, nowMs = 0) => {
    const shared = { nowMs, oldestQueuedAgeMs: 0, oldestDeadAgeMs: 0, overdue: 0, outboxTasks: 0 };
    const counts = Object.entries(numbers).map(([name, of]) => {
      const row = countsOf(name, of);
      const last = metrics.last?.get(name);
      return last !== undefined && `${last.totals}${last.states}` === `${row.totals}${row.states}`
        ? last
        : row;
    });
    return metrics.show({ counts, shared, depths: DEPTHS });
  };
  const valuesOf = (
    shown: ReturnType<typeof show>,
    name: string,
    of: Readonly<Record<string, string>> = {},
  ) => {
    const samples = [...(shown.find((metric) => metric.name === name)?.samples() ?? [])];
    const wanted = samples.filter(({ labels }) =>
      Object.entries(of).every(([key, value]) => labels[key] === value),
    );
    return Object.fromEntries(wanted.map(({ labels, value }) => [labels["publisher"], value]));
  };
  const accepted = (numbers: Readonly<Record<string, Numbers>>, nowMs?: number) =>
    valuesOf(show(numbers, nowMs), "adrelay_acknowledgments_accepted_total");
  const queued = (numbers: Readonly<Record<string, Numbers>>, nowMs?: number) =>
    valuesOf(show(numbers, nowMs), "adrelay_acknowledgments", { state: "queued" });
  return { accepted, queued };
}

test("few publishers all have their series, also those that are no longer configured", () => {
  const { accepted } = setup(["a", "b"], 3);
  expect(accepted({ former: { accepted: 7 } })).toEqual({ a: 0, b: 0, former: 7 });
});

test("of many publishers only those have series whose counts change", () => {
  const { accepted } = setup(["a", "b", "c", "d"], 3);
  expect(accepted({ a: { accepted: 5 }, b: { accepted: 6 } })).toEqual({ other: 0 });
  expect(accepted({ a: { accepted: 9 }, b: { accepted: 6 } })).toEqual({ a: 9, other: 4 });
  expect(accepted({ a: { accepted: 10 }, b: { accepted: 6 }, c: { accepted: 1 } })).toEqual({
    a: 10,
    c: 1,
    other: 5,
  });
});

test("a publisher with unfinished ads has series although nothing changes", () => {
  const { queued } = setup(["a", "b", "c", "d"], 3);
  expect(queued({ a: { queued: 1 }, b: {} })).toEqual({ a: 1, other: 0 });
  expect(queued({ a: { queued: 1 }, b: {} }, 3 * DAY_MS)).toEqual({ a: 1, other: 0 });
});

test("a publisher whose counts stand for a day loses its series, and gets them again", () => {
  const { accepted } = setup(["a", "b", "c", "d"], 3);
  accepted({ a: { accepted: 5 } });
  expect(accepted({ a: { accepted: 6 } })).toEqual({ a: 6, other: 1 });
  expect(accepted({ a: { accepted: 6 } }, DAY_MS)).toEqual({ a: 6, other: 1 });
  expect(accepted({ a: { accepted: 6 } }, DAY_MS + 1)).toEqual({ other: 1 });
  expect(accepted({ a: { accepted: 8 } }, DAY_MS + 2)).toEqual({ a: 8, other: 3 });
});

test("publishers beyond the limit share other, whose counters never fall", () => {
  const { accepted, queued } = setup(["a", "b", "c"], 1);
  accepted({});
  expect(accepted({ a: { accepted: 1 }, b: { accepted: 2 } })).toEqual({ a: 1, other: 3 });
  expect(accepted({ a: { accepted: 1 }, b: { accepted: 5 }, c: { accepted: 4 } })).toEqual({
    a: 1,
    other: 10,
  });
  // b takes the place of a.
  const later = { a: { accepted: 1 }, b: { accepted: 6 }, c: { accepted: 4 } };
  expect(accepted(later, DAY_MS + 1)).toEqual({ b: 6, other: 11 });
  expect(queued({ a: { queued: 2 }, b: { queued: 3 }, c: { queued: 4 } }, DAY_MS + 1)).toEqual({
    b: 3,
    other: 6,
  });
});

test("a publisher that is named other shares the series of the others", () => {
  const { queued } = setup(["other", "a"], 2);
  expect(queued({ other: { queued: 2 }, a: { queued: 3 } })).toEqual({ a: 3, other: 2 });
});
