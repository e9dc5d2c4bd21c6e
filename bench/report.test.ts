import { expect, test } from "vitest";
import { atLeast, atMost, type Figure } from "./figures.ts";
import { formatMarkdown, formatTable, formatVerdict } from "./report.ts";

const FIGURES: readonly Figure[] = [
  {
    part: "intake",
    what: "acknowledgments",
    unit: "/s",
    ours: [5000, 4000, 6000],
    against: { name: "naive server", values: [5000, 5000, 5000] },
    promise: atLeast("ratio", 1),
  },
  {
    part: "intake",
    what: "share that failed",
    unit: "%",
    ours: [0, 0, 0],
    against: { name: "naive server", values: [0, 0, 0] },
  },
  {
    part: "injection",
    what: "added p50",
    unit: "ms",
    ours: [0.5, 0.3, 10.25],
    against: { name: "bare proxy", values: [0.25, 0.3, 5] },
    promise: atMost("value", 1),
  },
  { part: "redis", what: "memory of one awaiting entry", unit: "B", ours: [334.2, 330] },
  { part: "delivery", what: "deliveries", unit: "/s", ours: [10], promise: atLeast("value", 20) },
];
const [INTAKE, FAILED, INJECTION, REDIS, DELIVERY] = FIGURES.map((figure) =>
  formatTable([figure]).split("\n").at(-1),
);

test("a promised ratio is followed by its lowest and highest round", () => {
  expect(INTAKE).toMatch(
    /^acknowledgments +5000\/s +5000\/s +naive server +1\.00 \(0\.80–1\.20\) +ratio ≥ 1 +holds$/,
  );
});

test("a promised value is followed by its spread, and so is the ratio", () => {
  expect(INJECTION).toMatch(
    /^added p50 +0\.50 ms \(0\.30–10\.25\) +0\.30 ms +bare proxy +2\.00 \(1\.00–2\.05\) +value ≤ 1 +holds$/,
  );
});

test("a value without a promise is only a median", () => {
  expect(REDIS).toMatch(/entry +332 B$/);
});

test("one round has no spread", () => {
  expect(DELIVERY).toMatch(/^deliveries +10\.0\/s +value ≥ 20 +FAILS$/);
});

test("there is no ratio if both sides are zero", () => {
  expect(FAILED).toMatch(/failed +0\.00 % +0\.00 % +naive server$/);
});

test("each part is a block of the terminal's table, headed by its name", () => {
  const blocks = formatTable(FIGURES).split("\n\n");
  expect(blocks.map((block) => /^\w+/.exec(block)?.[0])).toEqual([
    "intake",
    "injection",
    "redis",
    "delivery",
  ]);
  expect(blocks[0]?.split("\n")).toHaveLength(3);
});

test("the Markdown table has a head and a line for each figure", () => {
  const lines = formatMarkdown(FIGURES).split("\n");
  expect(lines).toHaveLength(2 + FIGURES.length);
  expect(new Set(lines.map((line) => line.split("|").length)).size).toBe(1);
});

test("only figures with a promise are counted", () => {
  expect(formatVerdict(FIGURES)).toBe("2 of 3 promises hold");
});
