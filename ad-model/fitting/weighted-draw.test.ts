import { expect, test } from "vitest";
import { WeightedDraw } from "./weighted-draw.ts";

const drawn = (weights: readonly number[], count: number, seed = 0) => {
  const draw = new WeightedDraw(weights, seed);
  return Array.from({ length: count }, () => draw.next());
};

test("indices are drawn in proportion to their weights", () => {
  const indices = drawn([1, 0, 3], 10_000);
  const shareOf = (wanted: number) => indices.filter((index) => index === wanted).length / indices.length;
  expect(shareOf(0)).toBeCloseTo(0.25, 1);
  expect(shareOf(1)).toBe(0);
  expect(shareOf(2)).toBeCloseTo(0.75, 1);
});

test("every run with the same seed draws the same indices", () => {
  expect(drawn([1, 2, 3], 100, 7)).toEqual(drawn([1, 2, 3], 100, 7));
  expect(drawn([1, 2, 3], 100, 8)).not.toEqual(drawn([1, 2, 3], 100, 7));
});

test("chances are at least zero, below one, and spread evenly", () => {
  const draw = new WeightedDraw([1], 0);
  const chances = Array.from({ length: 10_000 }, () => draw.chance());
  expect(Math.min(...chances)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...chances)).toBeLessThan(1);
  expect(chances.filter((chance) => chance < 0.3).length / chances.length).toBeCloseTo(0.3, 1);
});
