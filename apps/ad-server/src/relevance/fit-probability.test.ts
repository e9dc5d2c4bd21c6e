import fc from "fast-check";
import { expect, test } from "vitest";
import { type FitSigns, fitProbability } from "./fit-probability.ts";

const share = fc.double({ min: 0, max: 1, noNaN: true });
const signs = fc.record({ certainty: share, served: share, wish: share });
const CLEAR: FitSigns = { certainty: 0.9, served: 0.9, wish: 0.99 };

test("it is a probability for any signs", () => {
  fc.assert(
    fc.property(signs, (any) => {
      const probability = fitProbability(any);
      expect(probability).toBeGreaterThanOrEqual(0);
      expect(probability).toBeLessThanOrEqual(1);
    }),
  );
});

test.each(["certainty", "served", "wish"] as const)("it never falls if the %s grows", (sign) => {
  fc.assert(
    fc.property(signs, share, (any, value) => {
      const [less, more] = any[sign] < value ? [any[sign], value] : [value, any[sign]];
      const at = (grown: number) => fitProbability({ ...any, [sign]: grown } satisfies FitSigns);
      expect(at(less)).toBeLessThanOrEqual(at(more));
    }),
  );
});

test("clear signs are a fit, and an ad that doesn't serve the need isn't", () => {
  expect(fitProbability(CLEAR)).toBeGreaterThan(0.5);
  expect(fitProbability({ ...CLEAR, served: 0 })).toBeLessThan(0.5);
});
