import { expect, test } from "vitest";
import { atLeast, type Figure } from "./figure.ts";
import { formatMarkdown, formatTable, formatVerdict } from "./table.ts";

const FIGURES: readonly Figure[] = [
  {
    part: "intake",
    what: "acknowledgments",
    unit: "/s",
    ours: [5000, 4000, 6000],
    against: { name: "naive server", values: [5000, 5000, 5000] },
    promise: atLeast("ratio", 1),
  },
  { part: "redis", what: "memory of one that is awaiting", unit: "B", ours: [334.2] },
  { part: "delivery", what: "deliveries", unit: "/s", ours: [10], promise: atLeast("value", 20) },
];

test("the table has medians, ratios, promises and whether they hold", () => {
  const lines = formatTable(FIGURES).split("\n");
  expect(lines[1]).toMatch(/acknowledgments +5000\/s +5000\/s +naive server +1\.00 +ratio ≥ 1 +holds$/);
  expect(lines[2]).toMatch(/awaiting +334 B$/);
  expect(lines[3]).toMatch(/10\.0\/s +value ≥ 20 +FAILS$/);
});

test("the Markdown table has a line for each figure below its head", () => {
  const lines = formatMarkdown(FIGURES).split("\n");
  expect(lines).toHaveLength(2 + FIGURES.length);
  expect(new Set(lines.map((line) => line.split("|").length)).size).toBe(1);
});

test("only figures with a promise are counted", () => {
  expect(formatVerdict(FIGURES)).toBe("1 of 2 promises hold");
});
