import { expect, test } from "vitest";
import { fitWeights } from "./logistic-regression.ts";

test("the weights give the shares of true cases back", () => {
  const cases = Array.from({ length: 4000 }, (_, index) => ({
    terms: [1, index % 2],
    // Of the even ones a quarter is true, of the odd ones three quarters.
    isTrue: index % 2 === 0 ? index % 8 === 0 : index % 8 !== 1,
  }));
  const [base = 0, more = 0] = fitWeights(cases);
  expect(1 / (1 + Math.exp(-base))).toBeCloseTo(0.25, 2);
  expect(1 / (1 + Math.exp(-base - more))).toBeCloseTo(0.75, 2);
});

test("cases that can be parted without an error give finite weights", () => {
  const cases = [-2, -1, 1, 2].map((term) => ({ terms: [1, term], isTrue: term > 0 }));
  const [, weight = 0] = fitWeights(cases);
  expect(weight).toBeGreaterThan(0.5);
  expect(weight).toBeLessThan(10);
});
