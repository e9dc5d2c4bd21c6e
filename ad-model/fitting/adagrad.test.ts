import { expect, test } from "vitest";
import { Adagrad, meanSquareOf } from "./adagrad.ts";

const OPTIONS = { learningRate: 0.5, decay: 0, spread: 0, seed: 0 };
const vector = (...values: number[]) => Float32Array.from(values);

test("weights start within the spread, and at the same values for the same seed", () => {
  const shape = { rows: 100, rowSize: 10 };
  const valuesOf = (seed: number) => new Adagrad(shape, { ...OPTIONS, spread: 0.3, seed }).values;
  const values = valuesOf(1);
  expect(Math.max(...values.map(Math.abs))).toBeLessThanOrEqual(0.3);
  expect(new Set(values).size).toBeGreaterThan(900);
  expect(valuesOf(1)).toEqual(values);
  expect(valuesOf(2)).not.toEqual(values);
});

test("a row is added to a vector and multiplied by one", () => {
  const weights = new Adagrad({ rows: 2, rowSize: 2 }, OPTIONS);
  weights.values.set([9, 9, 2, 3]);
  const sum = vector(1, 1);
  weights.addRow(sum, 1, 10);
  expect(sum).toEqual(vector(21, 31));
  expect(weights.product(1, vector(1, 2))).toBe(8);
});

test("the mean square of a vector is that of its numbers", () => {
  expect(meanSquareOf(vector(1, -2, 2))).toBe(3);
});

test("steps go against the gradient and become smaller, in one row only", () => {
  const weights = new Adagrad({ rows: 2, rowSize: 2 }, OPTIONS);
  const errors = vector(0, Math.SQRT2);
  const step = () => {
    const before = weights.values[1] ?? 0;
    weights.descend(0, errors, meanSquareOf(errors), 2);
    return before - (weights.values[1] ?? 0);
  };
  const [first, second] = [step(), step()];
  expect(first).toBeCloseTo(0.5 * Math.SQRT2, 3);
  expect(second).toBeCloseTo(0.5, 3);
  expect([...weights.values.filter((_, at) => at !== 1)].map(Math.abs)).toEqual([0, 0, 0]);
});

test("a step takes the share of the rate in force", () => {
  const weights = new Adagrad({ rows: 1, rowSize: 1 }, OPTIONS);
  weights.rateShare = 0.1;
  weights.descend(0, vector(1), 1, -3);
  expect(weights.values[0]).toBeCloseTo(0.05, 3);
});

test("decay pulls a weight towards zero without any error", () => {
  const weights = new Adagrad({ rows: 1, rowSize: 1 }, { ...OPTIONS, decay: 0.1 });
  weights.values[0] = 1;
  weights.descend(0, vector(0), 0, 1);
  expect(weights.values[0]).toBeLessThan(1);
});
