import { expect, test } from "vitest";
import { atLeast, atMost, type Figure, holds, ratioOf, ratiosOf } from "./figure.ts";

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

test("each round has a ratio of its own", () => {
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
])("the promise of %s is judged right", (_name, promise, isKept) => {
  expect(holds(figure({ promise }))).toBe(isKept);
});

test("a ratio to a side that measured nothing keeps no promise", () => {
  const against = { name: "naive server", values: [] };
  expect(holds(figure({ against, promise: atMost("ratio", 1) }))).toBe(false);
});

test("without a promise there is nothing to keep", () => {
  expect(holds(figure({}))).toBeUndefined();
});
