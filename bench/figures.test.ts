import { expect, test } from "vitest";
import {
  atLeast,
  atMost,
  type Figure,
  holds,
  median,
  percentile,
  ratioOf,
  ratiosOf,
  spreadOf,
} from "./figures.ts";

const figure = (more: Partial<Figure>): Figure => ({
  part: "intake",
  what: "acknowledgments",
  unit: "/s",
  ours: [90, 300, 100],
  against: { name: "naive server", values: [100, 150, 100] },
  ...more,
});

test("a ratio is the median of the rounds' ratios", () => {
  expect(ratioOf(figure({}))).toBe(1);
});

test("each round has its own ratio", () => {
  expect(ratiosOf(figure({}))).toEqual([0.9, 2, 1]);
});

test("a figure that is compared with nothing has no ratio", () => {
  const { against: _against, ...alone } = figure({});
  expect([ratioOf(alone), ratiosOf(alone)]).toEqual([undefined, undefined]);
});

test.each([
  ["a ratio on its lower bound", atLeast("ratio", 1), true],
  ["a ratio below its lower bound", atLeast("ratio", 1.01), false],
  ["a value on its upper bound", atMost("value", 100), true],
  ["a value above its upper bound", atMost("value", 99), false],
])("the promise of %s is judged correctly", (_name, promise, isKept) => {
  expect(holds(figure({ promise }))).toBe(isKept);
});

test("a ratio to a side that measured nothing keeps no promise", () => {
  const against = { name: "naive server", values: [] };
  expect(holds(figure({ against, promise: atMost("ratio", 1) }))).toBe(false);
});

test("a figure without a promise has no verdict", () => {
  expect(holds(figure({}))).toBeUndefined();
});

test("the median of an odd number of values is the middle one", () => {
  expect(median([9, 1, 5])).toBe(5);
});

test("the median of an even number of values is the mean of the two middle ones", () => {
  expect(median([4, 1, 2, 9])).toBe(3);
});

test("a spread goes from the lowest to the highest value", () => {
  expect(spreadOf([4, 1, 9, 2])).toEqual({ lowest: 1, highest: 9 });
});

test.each([[[]], [[4]], [[4, Number.NaN]]])("%j has no spread", (values) => {
  expect(spreadOf(values)).toBeUndefined();
});

test("a percentile is one of the measured values", () => {
  const sorted = Array.from({ length: 200 }, (_, at) => at + 1);
  expect([percentile(sorted, 0.5), percentile(sorted, 0.99), percentile(sorted, 1)]).toEqual([101, 199, 200]);
});

test("the percentile of no values is zero", () => {
  expect(percentile([], 0.99)).toBe(0);
});
