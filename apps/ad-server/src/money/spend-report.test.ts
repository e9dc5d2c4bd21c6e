import fc from "fast-check";
import { expect, test } from "vitest";
import { COUNTERS, GROUPINGS, makeSpendReport, type ReportEntry } from "./spend-report.ts";

const entries = fc.array(
  fc.record({
    day: fc.constantFrom("2026-05-31", "2026-06-01"),
    publisher: fc.constantFrom("p1", "p2", "p3"),
    ad: fc.constantFrom(null, "drift", "tempo", "glide"),
    counter: fc.constantFrom(...COUNTERS),
    value: fc.integer({ min: 0, max: 1_000_000_000 }),
  }),
);
const ADVERTISERS = new Map([
  ["drift", "velmora"],
  ["glide", "velmora"],
  ["tempo", "stridewell"],
]);

test.each(GROUPINGS)("rows by %s add up to the totals, with sorted unique keys", (grouping) => {
  fc.assert(
    fc.property(entries, (all) => {
      const { rows, totals } = makeSpendReport(all, grouping, ADVERTISERS);
      for (const counter of COUNTERS) {
        expect(rows.reduce((sum, row) => sum + row[counter], 0)).toBe(totals[counter]);
      }
      const keys = rows.map(({ key }) => key ?? "");
      expect(keys).toEqual([...new Set(keys)].sort());
    }),
  );
});

test("an advertiser's row sums its ads, and null sums what belongs to no ad", () => {
  const entry = (ad: string | null, value: number): ReportEntry => ({
    day: "2026-06-01",
    publisher: "p1",
    ad,
    counter: "requests",
    value,
  });
  const all = [entry("drift", 1), entry("glide", 2), entry("tempo", 4), entry(null, 8)];
  const rows = makeSpendReport(all, "advertiser", ADVERTISERS).rows;
  expect(rows.map(({ key, requests }) => [key, requests])).toEqual([
    [null, 8],
    ["stridewell", 4],
    ["velmora", 3],
  ]);
});
