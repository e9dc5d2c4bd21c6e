import { expect, test } from "vitest";
import { PLAIN_AD } from "../../testdata/plain-ad.ts";
import { type Ad, adSchema } from "../catalog/ad.ts";
import { type Audience, isEligible } from "./targeting.ts";

const NOW_MS = Date.UTC(2026, 5, 1);
const NOBODY: Audience = {
  country: undefined,
  region: undefined,
  city: undefined,
  asn: undefined,
  age: undefined,
  gender: undefined,
  language: undefined,
};

function makeAd(fields: object): Ad {
  return adSchema.parse({ ...PLAIN_AD, id: "ad", ...fields });
}

test.each<[targeting: object, matching: Partial<Audience>, other: Partial<Audience>]>([
  [{ countries: ["US", "CA"] }, { country: "CA" }, { country: "MX" }],
  [{ regions: ["US-CA"] }, { region: "US-CA" }, { region: "US-NY" }],
  [{ regions: ["US-CA"] }, { country: "US", region: "ca" }, { country: "MX", region: "CA" }],
  [{ regions: ["us-ca"] }, { region: "US-CA" }, { region: "CA" }],
  [{ regions: ["California"] }, { region: "California" }, { country: "US", region: "CA" }],
  [{ countries: ["UK"] }, { country: "GB" }, { country: "UA" }],
  [{ cities: [" Sa\u0303o  Paulo"] }, { city: "são paulo" }, { city: "Paulo" }],
  [{ cities: ["Lisboa"] }, { city: "lisboa" }, { city: "Porto" }],
  [{ asns: [64500] }, { asn: 64500 }, { asn: 64501 }],
  [{ genders: ["female"] }, { gender: "female" }, { gender: "male" }],
  [{ languages: ["en"] }, { language: "en" }, { language: "de" }],
  [{ age_min: 18 }, { age: 18 }, { age: 17 }],
  [{ age_max: 79 }, { age: 79 }, { age: 80 }],
  [{ age_min: 40, age_max: 99 }, { age: 40 }, { age: 39 }],
])("targeting %j matches %j, but neither %j nor an unknown value", (targeting, matching, other) => {
  const ad = makeAd({ targeting });
  expect(isEligible(ad, { ...NOBODY, ...matching }, NOW_MS)).toBe(true);
  expect(isEligible(ad, { ...NOBODY, ...other }, NOW_MS)).toBe(false);
  expect(isEligible(ad, NOBODY, NOW_MS)).toBe(false);
});

/** For each attribute: a targeting, an audience that matches it, and one that doesn't. */
const ATTRIBUTES = {
  country: [{ countries: ["US"] }, { country: "US" }, { country: "DE" }],
  region: [{ regions: ["US-CA"] }, { region: "US-CA" }, { region: "US-NY" }],
  city: [{ cities: ["Porto"] }, { city: "porto" }, { city: "Lisboa" }],
  asn: [{ asns: [64500] }, { asn: 64500 }, { asn: 64501 }],
  age: [{ age_min: 21, age_max: 60 }, { age: 60 }, { age: 20 }],
  gender: [{ genders: ["other"] }, { gender: "other" }, { gender: "female" }],
  language: [{ languages: ["fr"] }, { language: "fr" }, { language: "en" }],
} as const satisfies Record<keyof Audience, readonly [object, Partial<Audience>, Partial<Audience>]>;

const EVERYTHING_TARGETED = Object.assign({}, ...Object.values(ATTRIBUTES).map(([targeting]) => targeting));
const EVERYTHING_MATCHING = Object.assign(
  { ...NOBODY },
  ...Object.values(ATTRIBUTES).map(([, match]) => match),
);

test.each(Object.entries(ATTRIBUTES).map(([attribute, [, , mismatch]]) => [attribute, mismatch] as const))(
  "with seven targeted attributes, a wrong or unknown %s alone excludes the ad",
  (attribute, mismatch) => {
    const ad = makeAd({ targeting: EVERYTHING_TARGETED });
    expect(isEligible(ad, EVERYTHING_MATCHING, NOW_MS)).toBe(true);
    expect(isEligible(ad, { ...EVERYTHING_MATCHING, ...mismatch }, NOW_MS)).toBe(false);
    expect(isEligible(ad, { ...EVERYTHING_MATCHING, [attribute]: undefined }, NOW_MS)).toBe(false);
  },
);

test.each<[what: string, ad: object]>([
  ["marked as for adults", { adult: true }],
  ["of a category for adults", { category: "dating" }],
  ["of a category with a word for adults", { category: "online-casino" }],
  ["of a category with such a word in the singular", { category: "e-cigarette" }],
  ["of a category with such a word in the plural", { category: "craft-breweries" }],
  ["of such a category, with a lower least age", { category: "dating", targeting: { age_min: 16 } }],
  ["of such a category, with only a greatest age", { category: "wine-clubs", targeting: { age_max: 99 } }],
  ["of such a category, said not to be for adults", { category: "dating", adult: false }],
  ["with a least age of 18", { targeting: { age_min: 18 } }],
])("an ad %s needs a known age of 18 or more", (_what, fields) => {
  const shown = (age: number | undefined) => isEligible(makeAd(fields), { ...NOBODY, age }, NOW_MS);
  expect([undefined, 0, 17, 18, 99].map(shown)).toEqual([false, false, false, true, true]);
});

test("an ad without targeting may be shown to everybody", () => {
  expect(isEligible(makeAd({}), NOBODY, NOW_MS)).toBe(true);
});

test("every targeted attribute must match, not only one", () => {
  const ad = makeAd({ targeting: { countries: ["US"], age_min: 18 } });
  expect(isEligible(ad, { ...NOBODY, country: "US", age: 16 }, NOW_MS)).toBe(false);
  expect(isEligible(ad, { ...NOBODY, country: "US", age: 30 }, NOW_MS)).toBe(true);
});

test.each([
  ["2026-06-01T00:00:00Z", undefined, true],
  ["2026-06-01T00:00:01Z", undefined, false],
  [undefined, "2026-06-01T00:00:00Z", true],
  [undefined, "2026-05-31T23:59:59Z", false],
  ["2029-01-01T00:00:00Z", "2029-12-31T23:59:59Z", false],
])("a flight from %s to %s runs on 1 June 2026: %s", (start, end, runs) => {
  const flight = { ...(start === undefined ? {} : { start }), ...(end === undefined ? {} : { end }) };
  expect(isEligible(makeAd(flight), NOBODY, NOW_MS)).toBe(runs);
});
