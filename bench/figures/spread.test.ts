import { expect, test } from "vitest";
import { median, percentile, spreadOf } from "./spread.ts";

test("the median of an odd number of values is the middle one", () => {
  expect(median([9, 1, 5])).toBe(5);
});

test("the median of an even number is the mean of both middle ones", () => {
  expect(median([4, 1, 2, 9])).toBe(3);
});

test("values spread from the lowest to the highest", () => {
  expect(spreadOf([4, 1, 9, 2])).toEqual({ lowest: 1, highest: 9 });
});

test.each([[[]], [[4]], [[4, Number.NaN]]])("of %j there is no spread", (values) => {
  expect(spreadOf(values)).toBeUndefined();
});

test("a percentile is one of the values that were measured", () => {
  const sorted = Array.from({ length: 200 }, (_, at) => at + 1);
  expect([percentile(sorted, 0.5), percentile(sorted, 0.99), percentile(sorted, 1)]).toEqual([101, 199, 200]);
});

test("nothing measured has no percentile but zero", () => {
  expect(percentile([], 0.99)).toBe(0);
});
