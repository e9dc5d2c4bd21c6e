import { expect, test } from "vitest";
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
  return adSchema.parse({
    id: "ad",
    product_name: "Velmora Drift",
    advertiser: "velmora",
    category: "running-shoes",
    description: "A trainer.",
    keywords: ["running shoes"],
    landing_url: "https://velmora.example/",
    bid_cpm_micros: 1,
    budget_micros: 1,
    ...fields,
  });
}

test.each<[targeting: object, matching: Partial<Audience>, other: Partial<Audience>]>([
  [{ countries: ["US", "CA"] }, { country: "CA" }, { country: "MX" }],
  [{ regions: ["US-CA"] }, { region: "US-CA" }, { region: "US-NY" }],
  [{ regions: ["US-CA"] }, { country: "US", region: "ca" }, { country: "MX", region: "CA" }],
  [{ cities: ["Lisboa"] }, { city: "lisboa" }, { city: "Porto" }],
  [{ asns: [64500] }, { asn: 64500 }, { asn: 64501 }],
  [{ genders: ["female"] }, { gender: "female" }, { gender: "male" }],
  [{ languages: ["en"] }, { language: "en" }, { language: "de" }],
  [{ age_min: 18 }, { age: 18 }, { age: 17 }],
  [{ age_max: 79 }, { age: 79 }, { age: 80 }],
  [{ age_min: 40, age_max: 99 }, { age: 40 }, { age: 39 }],
])("%j takes %j, and neither %j nor a request without it", (targeting, matching, other) => {
  const ad = makeAd({ targeting });
  expect(isEligible(ad, { ...NOBODY, ...matching }, NOW_MS)).toBe(true);
  expect(isEligible(ad, { ...NOBODY, ...other }, NOW_MS)).toBe(false);
  expect(isEligible(ad, NOBODY, NOW_MS)).toBe(false);
});

test("an ad without targeting is for everybody", () => {
  expect(isEligible(makeAd({}), NOBODY, NOW_MS)).toBe(true);
});

test("every targeted attribute must match, not just one", () => {
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
