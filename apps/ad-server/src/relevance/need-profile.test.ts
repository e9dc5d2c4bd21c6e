import fc from "fast-check";
import { expect, test } from "vitest";
import { agreementOf, likenessOf, profileOf } from "./need-profile.ts";

const profiles = fc
  .array(fc.double({ min: 0.001, max: 1, noNaN: true }), { minLength: 40, maxLength: 40 })
  .map((needs) => profileOf({ needs: Float32Array.from(needs) }));

test("the shares of a profile add up to at most 1", () => {
  fc.assert(
    fc.property(profiles, (profile) => {
      expect(profile.reduce((sum, { probability }) => sum + probability, 0)).toBeLessThanOrEqual(1 + 1e-6);
      expect(profile.reduce((sum, { softened }) => sum + softened, 0)).toBeLessThanOrEqual(1 + 1e-6);
    }),
  );
});

test("a profile has the likeliest needs in their order, and no more than sixteen", () => {
  const profile = profileOf({ needs: Float32Array.from({ length: 40 }, (_, need) => (need * 7) % 40) });
  expect(profile.map(({ need }) => (need * 7) % 40)).toEqual(Array.from({ length: 16 }, (_, at) => 39 - at));
});

test("softened shares are closer together than the probabilities", () => {
  const [first, second] = profileOf({ needs: Float32Array.from([0.81, 0.09]) });
  expect(first).toMatchObject({ need: 0, probability: expect.closeTo(0.9), softened: expect.closeTo(0.75) });
  expect(second).toMatchObject({ need: 1, probability: expect.closeTo(0.1), softened: expect.closeTo(0.25) });
});

test("agreement and likeness lie between 0 and 1 and are mutual", () => {
  fc.assert(
    fc.property(profiles, profiles, (one, other) => {
      for (const measure of [agreementOf, likenessOf]) {
        expect(measure(one, other)).toBeGreaterThanOrEqual(0);
        expect(measure(one, other)).toBeLessThanOrEqual(1 + 1e-6);
        expect(measure(one, other)).toBeCloseTo(measure(other, one), 6);
      }
    }),
  );
});

test("two equal profiles are fully alike, however many needs they are spread over", () => {
  const spread = profileOf({ needs: Float32Array.from([0.1, 0.1, 0.1, 0.1]) });
  expect(likenessOf(spread, spread)).toBeCloseTo(1, 6);
  expect(agreementOf(spread, spread)).toBeLessThan(0.3);
  expect(likenessOf(spread, [])).toBe(0);
});
