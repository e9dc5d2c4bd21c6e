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
  // Often the same, so that many ranks are equal.
  fc.constantFrom(1_000_000, 2_000_000, 4_000_000),
  fc.integer({ min: 0, max: 9_000_000 }),
  fc.integer({ min: 0, max: BID_CPM_MICROS_MAX }),
);
const relevances = fc.oneof(
  fc.constantFrom(1, 0.5, 0.25, 1e-9),
  fc.double({ min: 0, max: 1, minExcluded: true, noNaN: true }),
);
const bidding = fc.record({ bid: bids, relevance: relevances });
const biddings = fc.array(bidding, { maxLength: 12 });
const requestIds = fc.uuid();

const candidatesOf = (all: readonly { bid: number; relevance: number }[]) =>
  all.map(({ bid, relevance }, index) => makeCandidate(`ad-${index}`, bid, relevance));
const REQUEST_ID = "3f2b8c1e-9d4a-4c6b-8f10-0a1b2c3d4e5f";
const offersOf = (candidates: readonly Candidate[], requestId = REQUEST_ID) =>
  holdAuction(candidates, FLOOR_CPM_MICROS, requestId).map(({ ad, priceMicros }) => ({
    id: ad.id,
    priceMicros,
  }));
const withBid = (candidates: readonly Candidate[], index: number, bid: number) =>
  candidates.map((candidate, at) =>
    at === index ? { ...candidate, ad: { ...candidate.ad, bid_cpm_micros: bid } } : candidate,
  );

test("the winner pays the least price that beats the next one", () => {
  const candidates = [
    makeCandidate("a", 4_201_000, 0.5),
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

test("of two equal ranks the request's id draws the first, at its own bid", () => {
  const candidates = [makeCandidate("b", 2_000_000, 1), makeCandidate("a", 2_000_000, 1)];
  const [first, second] = offersOf(candidates);
  expect([first?.priceMicros, second?.priceMicros]).toEqual([2000, FLOOR_MICROS]);
  const firsts = Array.from({ length: 20 }, (_, n) => offersOf(candidates, `request-${n}`)[0]?.id);
  expect(new Set(firsts)).toEqual(new Set(["a", "b"]));
});

test("a request draws the same order in every process", () => {
  const candidates = candidatesOf(Array.from({ length: 8 }, () => ({ bid: 2_000_000, relevance: 0.8 })));
  const order = offersOf(candidates).map(({ id }) => id);
  expect(order.join(" ")).toBe("ad-6 ad-3 ad-2 ad-1 ad-0 ad-5 ad-7 ad-4");
});

test("the order of the catalogue doesn't change the offers", () => {
  fc.assert(
    fc.property(biddings, requestIds, (all, requestId) => {
      const candidates = candidatesOf(all);
      expect(offersOf(candidates.toReversed(), requestId)).toEqual(offersOf(candidates, requestId));
    }),
  );
});

test.each([
  [0.98, 1],
  [0.775, 0.824],
  [1e-9, 0.05],
])("the relevances %d and %d are equal in an auction", (one, other) => {
  const candidates = [makeCandidate("a", 2_000_000, one), makeCandidate("b", 2_000_000, other)];
  expect(offersOf(candidates).map(({ priceMicros }) => priceMicros)).toEqual([2000, FLOOR_MICROS]);
});

test("a relevance that is a step higher is first in every request", () => {
  const candidates = [makeCandidate("a", 2_000_000, 0.75), makeCandidate("b", 2_000_000, 0.8)];
  for (let n = 0; n < 100; n += 1) {
    expect(offersOf(candidates, `request-${n}`)[0]?.id).toBe("b");
  }
});

/** The ids are fixed, so the outcome is always the same: no bound below can fail by chance. */
const IDS = Array.from(
  { length: 20_000 },
  (_, n) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`,
);

/** How often each ad is at each place. */
function countPlaces(candidates: readonly Candidate[]) {
  const places = new Map(candidates.map(({ ad }) => [ad.id, candidates.map(() => 0)]));
  for (const id of IDS) {
    for (const [place, { id: ad }] of offersOf(candidates, id).entries()) {
      const counts = places.get(ad) ?? [];
      counts[place] = (counts[place] ?? 0) + 1;
    }
  }
  return places;
}

/** Five standard deviations of a count of independent draws. */
const spread = (share: number) => 5 * Math.sqrt(IDS.length * share * (1 - share));

test("eight equal offers are at each place equally often", () => {
  const candidates = candidatesOf(Array.from({ length: 8 }, () => ({ bid: 2_000_000, relevance: 0.8 })));
  for (const counts of countPlaces(candidates).values()) {
    for (const count of counts) {
      expect(Math.abs(count - IDS.length / 8)).toBeLessThan(spread(1 / 8));
    }
  }
});

test("of offers of equal rank the more relevant one is first more often, in proportion", () => {
  const candidates = [
    makeCandidate("a", 8_000_000, 0.25),
    makeCandidate("b", 4_000_000, 0.5),
    makeCandidate("c", 2_000_000, 1),
  ];
  const places = countPlaces(candidates);
  for (const [ad, weight] of [
    ["a", 1],
    ["b", 2],
    ["c", 4],
  ] as const) {
    const firsts = places.get(ad)?.[0] ?? 0;
    expect(Math.abs(firsts - (IDS.length * weight) / 7)).toBeLessThan(spread(weight / 7));
  }
});

test("a pair of equal offers draws its order independently of another pair", () => {
  const [one = [], other = []] = ["one", "other"].map((name) =>
    [`${name}-1`, `${name}-2`].map((id) => makeCandidate(id, 2_000_000, 1)),
  );
  const same = IDS.filter(
    (id) => offersOf(one, id)[0]?.id.at(-1) === offersOf(other, id)[0]?.id.at(-1),
  ).length;
  expect(Math.abs(same - IDS.length / 2)).toBeLessThan(spread(1 / 2));
});

test.each([0, -1, Number.NaN])("a relevance of %s takes no part", (relevance) => {
  expect(offersOf([makeCandidate("a", 2_000_000, relevance)])).toEqual([]);
});

test("a price is a whole number between the floor and the bid", () => {
  fc.assert(
    fc.property(biddings, requestIds, (all, requestId) => {
      const offers = holdAuction(candidatesOf(all), FLOOR_CPM_MICROS, requestId);
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
    fc.property(biddings, fc.integer({ min: 0, max: 9_000_000 }), requestIds, (all, more, requestId) => {
      const candidates = candidatesOf(all);
      const [first] = offersOf(candidates, requestId);
      const index = candidates.findIndex(({ ad }) => ad.id === first?.id);
      const raised = Math.min((candidates[index]?.ad.bid_cpm_micros ?? 0) + more, BID_CPM_MICROS_MAX);
      const [after] = offersOf(withBid(candidates, index, raised), requestId);
      expect(after).toEqual(first);
    }),
  );
});

test("a higher bid never loses a place", () => {
  fc.assert(
    fc.property(
      fc.array(bidding, { minLength: 1, maxLength: OFFERS_MAX }),
      fc.integer({ min: 0, max: 9_000_000 }),
      requestIds,
      (all, more, requestId) => {
        const candidates = candidatesOf(all);
        const placeAmong = (offers: ReturnType<typeof offersOf>) => {
          const place = offers.findIndex(({ id }) => id === "ad-0");
          return place === -1 ? OFFERS_MAX : place;
        };
        const raised = Math.min((candidates[0]?.ad.bid_cpm_micros ?? 0) + more, BID_CPM_MICROS_MAX);
        const before = placeAmong(offersOf(candidates, requestId));
        const after = placeAmong(offersOf(withBid(candidates, 0, raised), requestId));
        expect(after).toBeLessThanOrEqual(before);
      },
    ),
  );
});

test("bidding anything but the true worth never gains anything", () => {
  fc.assert(
    fc.property(
      fc.array(bidding, { minLength: 1, maxLength: 12 }),
      bids,
      requestIds,
      (all, lie, requestId) => {
        const candidates = candidatesOf(all);
        const worthMicros = Math.floor((candidates[0]?.ad.bid_cpm_micros ?? 0) / 1000);
        const gain = (offers: ReturnType<typeof offersOf>) =>
          offers[0]?.id === "ad-0" ? worthMicros - offers[0].priceMicros : 0;
        const lying = gain(offersOf(withBid(candidates, 0, lie), requestId));
        expect(lying).toBeLessThanOrEqual(gain(offersOf(candidates, requestId)));
      },
    ),
  );
});

test("at its price an offer is before the next one, and at one micro less behind it", () => {
  fc.assert(
    fc.property(fc.array(bidding, { minLength: 2, maxLength: OFFERS_MAX }), requestIds, (all, requestId) => {
      const candidates = candidatesOf(all);
      const offers = offersOf(candidates, requestId);
      for (const [place, { id, priceMicros }] of offers.slice(0, -1).entries()) {
        const index = candidates.findIndex(({ ad }) => ad.id === id);
        const order = (micros: number) =>
          offersOf(withBid(candidates, index, micros * 1000), requestId).map((offer) => offer.id);
        const next = offers[place + 1]?.id ?? "";
        expect(order(priceMicros).indexOf(id)).toBeLessThan(order(priceMicros).indexOf(next));
        if (priceMicros > FLOOR_MICROS) {
          const cheaper = order(priceMicros - 1);
          expect(cheaper.indexOf(id)).toBeGreaterThan(cheaper.indexOf(next));
        }
      }
    }),
  );
});

test("if the first can't pay, the others are offered as if it were absent", () => {
  fc.assert(
    fc.property(biddings, requestIds, (all, requestId) => {
      const candidates = candidatesOf(all);
      const [first, ...rest] = offersOf(candidates, requestId);
      const without = offersOf(
        candidates.filter(({ ad }) => ad.id !== first?.id),
        requestId,
      );
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
