import { expect, test } from "vitest";
import { PLAIN_AD } from "../../testdata/plain-ad.ts";
import { adSchema } from "../catalog/ad.ts";
import { offerTermsOf, sessionMarkOf } from "./offer-terms.ts";

function makeAd(more: object) {
  return adSchema.parse({
    ...PLAIN_AD,
    id: "drift",
    bid_cpm_micros: 3_100_000,
    budget_micros: 40_000_000,
    ...more,
  });
}

const termsOf = (more: object, mode: "even" | "asap") =>
  offerTermsOf({ ad: makeAd(more), priceMicros: 2101 }, { mode, days: 30 });

test("without cap and pacing an offer is its price and its budget", () => {
  expect(termsOf({}, "asap")).toEqual({
    ad: "drift",
    advertiser: "velmora",
    price: 2101,
    budget: 40_000_000,
    remembered: {
      product: "Velmora Drift",
      maker: "velmora",
      landing_url: "https://velmora.example/",
    },
  });
});

test("pacing goes by the flight, and leaves a thousand impressions free", () => {
  expect(termsOf({}, "even").pace).toEqual({ days: 30, head_start: 3_100_000 });
  const flight = { start: "2026-06-01T00:00:00Z", end: "2026-06-30T23:59:59Z" };
  expect(termsOf(flight, "even").pace).toEqual({
    days: 30,
    head_start: 3_100_000,
    from_ms: Date.UTC(2026, 5, 1),
    until_ms: Date.UTC(2026, 5, 30, 23, 59, 59),
  });
});

test.each([
  [24, 86_400_000],
  [0.5, 1_800_000],
  [1e-9, 1],
])("a cap of %d hours is a window of %d whole milliseconds", (per_hours, window_ms) => {
  const cap = { frequency_cap: { per_session: 2, per_hours } };
  expect(termsOf(cap, "asap").cap).toEqual({ per_session: 2, window_ms });
});

test("a product's name with a lone surrogate stays readable for Lua", () => {
  expect(termsOf({ product_name: "Drift \ud800" }, "asap").remembered["product"]).toBe("Drift \ufffd");
});

test("a session's mark is the publisher's own and doesn't show its id", () => {
  const mark = sessionMarkOf("p1", "sess-1");
  expect(mark).toMatch(/^[0-9a-f]{32}$/);
  expect(sessionMarkOf("p1", "sess-1")).toBe(mark);
  expect(sessionMarkOf("p2", "sess-1")).not.toBe(mark);
  expect(sessionMarkOf("p1", "sess-2")).not.toBe(mark);
});
