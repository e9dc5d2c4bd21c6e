import { expect, test } from "vitest";
import { Adagrad } from "./adagrad.ts";

const OPTIONS = { learningRate: 0.5, decay: 0, spread: 0 };
const vector = (...values: number[]) => Float32Array.from(values);

test("weights start within the spread, and at the same values each time", () => {
  const options = { ...OPTIONS, spread: 0.3 };
  const { values } = new Adagrad(1000, options);
  expect(Math.max(...values.map(Math.abs))).toBeLessThanOrEqual(0.3);
  expect(new Set(values).size).toBeGreaterThan(900);
  expect(new Adagrad(1000, options).values).toEqual(values);
});

test("a row is added to a vector and multiplied by one", () => {
  const weights = new Adagrad(4, OPTIONS);
  weights.values.set([9, 9, 2, 3]);
  const sum = vector(1, 1);
  weights.addRow(sum, 2, 10);
  expect(sum).toEqual(vector(21, 31));
  expect(weights.product(2, vector(1, 2))).toBe(8);
});

test("steps go against the gradient and become smaller", () => {
  const weights = new Adagrad(2, OPTIONS);
  const step = () => {
    const before = weights.values[1] ?? 0;
    weights.descend(0, vector(0, 1), 2);
    return before - (weights.values[1] ?? 0);
  };
  const [first, second] = [step(), step()];
  expect(first).toBeCloseTo(0.5, 3);
  expect(second).toBeCloseTo(0.5 / Math.sqrt(2), 3);
  expect(weights.values[0]).toBeCloseTo(0, 9);
});

test("one weight moves alone, by the share of the rate in force", () => {
  const weights = new Adagrad(2, OPTIONS);
  weights.rateShare = 0.1;
  weights.descendOne(1, -3);
  expect([...weights.values]).toEqual([expect.closeTo(0, 9), expect.closeTo(0.05, 3)]);
});

test("decay pulls a weight towards zero without any error", () => {
  const weights = new Adagrad(1, { ...OPTIONS, decay: 0.1 });
  weights.values[0] = 1;
  weights.descend(0, vector(0), 1);
  expect(weights.values[0]).toBeLessThan(1);
});
