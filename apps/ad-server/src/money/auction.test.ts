import fc from "fast-check";
import { expect, test } from "vitest";
import { PLAIN_AD } from "../../testdata/plain-ad.ts";
import { adSchema, BID_CPM_MICROS_MAX } from "../catalog/ad.ts";
import { type Candidate, holdAuction, OFFERS_MAX, offerTermsOf } from "./auction.ts";

const FLOOR_CPM_MICROS = 100_500;
const FLOOR_MICROS = 101;

function makeCandidate(id: string, bidCpmMicros: number, relevance: number): Candidate {
  const ad = adSchema.parse({
    id,
    product_name: id,
    advertiser: "velmora",
    category: "running-shoes",
    description: "A trainer.",
    keywords: ["running shoes"],
    landing_url: "https://velmora.example/",
    bid_cpm_micros: bidCpmMicros,
    budget_micros: 1,
  });
  return { ad, relevance };
}

const bids = fc.oneof(
  fc.integer({ min: 0, max: 9_000_000 }),
  fc.integer({ min: 0, max: BID_CPM_MICROS_MAX }),
);
const relevances = fc.oneof(
  fc.constantFrom(1, 0.5, 0.25, 1e-9),
  fc.double({ min: 0, max: 1, minExcluded: true, noNaN: true }),
);
const bidding = fc.record({ bid: bids, relevance: relevances });
const biddings = fc.array(bidding, { maxLength: 12 });

const candidatesOf = (all: readonly { bid: number; relevance: number }[]) =>
  all.map(({ bid, relevance }, index) => makeCandidate(`ad-${index}`, bid, relevance));
const offersOf = (candidates: readonly Candidate[]) =>
  holdAuction(candidates, FLOOR_CPM_MICROS).map(({ ad, priceMicros }) => ({ id: ad.id, priceMicros }));
const withBid = (candidates: readonly Candidate[], index: number, bid: number) =>
  candidates.map((candidate, at) =>
    at === index ? { ...candidate, ad: { ...candidate.ad, bid_cpm_micros: bid } } : candidate,
  );

test("the winner pays the least price that beats the next one", () => {
  const candidates = [
    makeCandidate("a", 4_200_000, 0.5),
    makeCandidate("b", 3_100_000, 1),
    makeCandidate("c", 1_000_000, 0.2),
  ];
  expect(offersOf(candidates)).toEqual([
    { id: "b", priceMicros: 2101 },
    { id: "a", priceMicros: 400 },
    { id: "c", priceMicros: FLOOR_MICROS },
  ]);
});

test("a bid below the floor takes no part", () => {
  const candidates = [makeCandidate("a", 101_000, 1), makeCandidate("b", 100_999, 1)];
  expect(offersOf(candidates)).toEqual([{ id: "a", priceMicros: FLOOR_MICROS }]);
});

test("of two equal ranks the smaller id wins, at its own bid", () => {
  const candidates = [makeCandidate("b", 2_000_000, 1), makeCandidate("a", 2_000_000, 1)];
  expect(offersOf(candidates)).toEqual([
    { id: "a", priceMicros: 2000 },
    { id: "b", priceMicros: FLOOR_MICROS },
  ]);
});

test.each([0, -1, Number.NaN])("a relevance of %s takes no part", (relevance) => {
  expect(offersOf([makeCandidate("a", 2_000_000, relevance)])).toEqual([]);
});

test("a price is a whole number between the floor and the bid", () => {
  fc.assert(
    fc.property(biddings, (all) => {
      const offers = holdAuction(candidatesOf(all), FLOOR_CPM_MICROS);
      expect(offers.length).toBeLessThanOrEqual(OFFERS_MAX);
      for (const { ad, priceMicros } of offers) {
        expect(Number.isSafeInteger(priceMicros)).toBe(true);
        expect(priceMicros).toBeGreaterThanOrEqual(FLOOR_MICROS);
        expect(priceMicros * 1000).toBeLessThanOrEqual(ad.bid_cpm_micros);
      }
    }),
  );
});

test("a higher bid never loses an auction that a lower bid wins", () => {
  fc.assert(
    fc.property(biddings, fc.integer({ min: 0, max: 9_000_000 }), (all, more) => {
      const candidates = candidatesOf(all);
      const [first] = offersOf(candidates);
      const index = candidates.findIndex(({ ad }) => ad.id === first?.id);
      const raised = Math.min((candidates[index]?.ad.bid_cpm_micros ?? 0) + more, BID_CPM_MICROS_MAX);
      const [after] = offersOf(withBid(candidates, index, raised));
      expect(after).toEqual(first);
    }),
  );
});

test("bidding anything but the true worth never gains anything", () => {
  fc.assert(
    fc.property(fc.array(bidding, { minLength: 1, maxLength: 12 }), bids, (all, lie) => {
      const candidates = candidatesOf(all);
      const worthMicros = Math.floor((candidates[0]?.ad.bid_cpm_micros ?? 0) / 1000);
      const gain = (offers: ReturnType<typeof offersOf>) =>
        offers[0]?.id === "ad-0" ? worthMicros - offers[0].priceMicros : 0;
      expect(gain(offersOf(withBid(candidates, 0, lie)))).toBeLessThanOrEqual(gain(offersOf(candidates)));
    }),
  );
});

test("one micro less than the price would not have won", () => {
  fc.assert(
    fc.property(fc.array(bidding, { minLength: 2, maxLength: 12 }), (all) => {
      const candidates = candidatesOf(all);
      const [first] = offersOf(candidates);
      if (first === undefined || first.priceMicros === FLOOR_MICROS) {
        return;
      }
      const index = candidates.findIndex(({ ad }) => ad.id === first.id);
      const winners = [0, 1].map(
        (less) => offersOf(withBid(candidates, index, (first.priceMicros - less) * 1000))[0]?.id,
      );
      expect(winners[0]).toBe(first.id);
      expect(winners[1]).not.toBe(first.id);
    }),
  );
});

test("if the first can't pay, the others are offered as if it were absent", () => {
  fc.assert(
    fc.property(biddings, (all) => {
      const candidates = candidatesOf(all);
      const [first, ...rest] = offersOf(candidates);
      const without = offersOf(candidates.filter(({ ad }) => ad.id !== first?.id));
      expect(without.slice(0, rest.length)).toEqual(rest);
    }),
  );
});

function makePacedAd(more: object) {
  return adSchema.parse({
    ...PLAIN_AD,
    id: "drift",
    bid_cpm_micros: 3_100_000,
    budget_micros: 40_000_000,
    ...more,
  });
}

const termsOf = (more: object, mode: "even" | "asap") =>
  offerTermsOf({ ad: makePacedAd(more), priceMicros: 2101 }, { mode, days: 30 });

test("without cap and pacing an offer has only its price and budget", () => {
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

test("pacing follows the flight and never holds back a thousand impressions", () => {
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

test("a lone surrogate in a product's name is replaced, since Lua can't read it", () => {
  expect(termsOf({ product_name: "Drift \ud800" }, "asap").remembered["product"]).toBe("Drift \ufffd");
});
