import fc from "fast-check";
import { expect, test } from "vitest";
import { adSchema, BID_CPM_MICROS_MAX } from "../catalog/ad.ts";
import { type Candidate, holdAuction, OFFERS_MAX } from "./auction.ts";

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

test("the winner pays what just beats the next one", () => {
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

test("equal ranks go to the smaller id, at its own bid", () => {
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

test("a higher bid never loses what a lower one wins", () => {
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

test("no other bid than the true worth gains anything", () => {
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

test("if the first can't pay, the rest are offered as if it weren't there", () => {
  fc.assert(
    fc.property(biddings, (all) => {
      const candidates = candidatesOf(all);
      const [first, ...rest] = offersOf(candidates);
      const without = offersOf(candidates.filter(({ ad }) => ad.id !== first?.id));
      expect(without.slice(0, rest.length)).toEqual(rest);
    }),
  );
});
