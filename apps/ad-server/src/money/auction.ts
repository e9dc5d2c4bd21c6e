import type { Ad } from "../catalog/ad.ts";
import { type DrawTurn, drawTurns } from "./equal-offers.ts";

/**
 * The auction for one impression. Candidates are ordered by relevance × bid, and each gets its second price.
 *
 * Money is whole micros per impression. A bid is for a thousand impressions, so a thousandth of it counts, rounded
 * down: nobody pays more than the bid. Relevance is whole steps. So every product and quotient here is exact.
 *
 * 1. floor ≤ price ≤ bid.
 * 2. The price is the least at which the ad would still beat the next candidate. Another bid can't make it cheaper,
 *    so the best bid is what an impression is really worth.
 * 3. A higher bid never loses a place. Offers of equal rank take turns: the request's id draws which of them is first,
 *    and the more relevant one is first more often. The draw doesn't depend on bids, so 1 and 2 hold with it.
 *
 * An offer's price holds if no offer before it is sold. Only the store knows whether an ad has budget left and what the
 * session was just shown, and it checks that after the auction. So an ad that isn't sold can still set the price of the
 * ad before it.
 */
export interface Candidate {
  readonly ad: Ad;
  /** In (0, 1]. More counts as 1; a candidate at 0 or less takes no part. */
  readonly relevance: number;
}

export interface Offer {
  readonly ad: Ad;
  /** Price of one impression. */
  readonly priceMicros: number;
}

export const IMPRESSIONS_PER_MILLE = 1000;
/** The store tries the offers one by one in a single script; this bounds its time. */
export const OFFERS_MAX = 8;
/**
 * Relevance is an estimate, and it can't tell apart ads that are closer than about a twentieth. So it is rounded to
 * steps of 0.05, and near-equal offers become equal ones. A relevance below the first step counts as the first step.
 */
const RELEVANCE_STEPS = 20;

interface Bidder {
  readonly ad: Ad;
  readonly bidMicros: number;
  readonly relevanceSteps: number;
  /** bidMicros × relevanceSteps. */
  readonly rank: number;
  /** Of two equal ranks, the lower turn is first. */
  readonly turn: number;
}

/**
 * The offers of an auction, best first, at most OFFERS_MAX; none if no bid reaches the floor. The order and the prices
 * follow from the arguments.
 */
export function holdAuction(
  candidates: readonly Candidate[],
  floorCpmMicros: number,
  requestId: string,
): Offer[] {
  // Rounded up and at least one micro: no impression is sold below the floor, and none for nothing.
  const floorMicros = Math.max(1, Math.ceil(floorCpmMicros / IMPRESSIONS_PER_MILLE));
  const drawTurn = drawTurns(requestId);
  const bidders = candidates
    .filter(({ relevance }) => relevance > 0)
    .map((candidate) => bidderOf(candidate, drawTurn))
    .filter(({ bidMicros }) => bidMicros >= floorMicros)
    .sort(byRank);
  return bidders.slice(0, OFFERS_MAX).map((bidder, index) => ({
    ad: bidder.ad,
    priceMicros: Math.max(floorMicros, priceAgainst(bidder, bidders[index + 1])),
  }));
}

function bidderOf({ ad, relevance }: Candidate, drawTurn: DrawTurn): Bidder {
  const bidMicros = Math.floor(ad.bid_cpm_micros / IMPRESSIONS_PER_MILLE);
  const inSteps = Math.min(1, relevance) * RELEVANCE_STEPS;
  const relevanceSteps = Math.max(1, Math.round(inSteps));
  return {
    ad,
    bidMicros,
    relevanceSteps,
    rank: bidMicros * relevanceSteps,
    turn: drawTurn(ad.id, Math.max(1, inSteps)),
  };
}

function byRank(one: Bidder, other: Bidder): number {
  return other.rank - one.rank || (comesFirst(one, other) ? -1 : 1);
}

/** Which of two equal ranks is first. Ids are compared by code units, so the result is the same on every machine. */
function comesFirst(one: Bidder, other: Bidder): boolean {
  return one.turn < other.turn || (one.turn === other.turn && one.ad.id < other.ad.id);
}

/** The least whole price at which a bidder stays ahead of the next one. */
function priceAgainst(bidder: Bidder, next: Bidder | undefined): number {
  if (next === undefined) {
    return 0;
  }
  const tying = next.rank / bidder.relevanceSteps;
  return comesFirst(bidder, next) ? Math.ceil(tying) : Math.floor(tying) + 1;
}

/** `even` spreads an ad's budget over its flight; `asap` sells it as fast as prompts come. */
export const PACING_MODES = ["even", "asap"] as const;

export interface Pacing {
  readonly mode: (typeof PACING_MODES)[number];
  /** Days over which the budget of an ad without an end is spread. */
  readonly days: number;
}

/** An offer in the form that record-injection.lua reads. */
export interface OfferTerms {
  readonly ad: string;
  readonly advertiser: string;
  /** Micros: the price of this impression. */
  readonly price: number;
  /** Micros: the most that may ever be spent on the ad. */
  readonly budget: number;
  readonly cap?: { readonly per_session: number; readonly window_ms: number };
  readonly pace?: {
    readonly days: number;
    readonly from_ms?: number;
    readonly until_ms?: number;
    /** Micros that pacing never holds back on any day. */
    readonly head_start: number;
  };
  /** Fields that the response keeps for its acknowledgment. */
  readonly remembered: Readonly<Record<string, string>>;
}

/** What the store needs to know of an offer to sell it or pass it over. */
export function offerTermsOf({ ad, priceMicros }: Offer, pacing: Pacing): OfferTerms {
  return {
    ad: ad.id,
    advertiser: ad.advertiser,
    price: priceMicros,
    budget: ad.budget_micros,
    ...(ad.frequency_cap === undefined ? {} : { cap: capOf(ad.frequency_cap) }),
    ...(pacing.mode === "even" ? { pace: paceOf(ad, pacing.days) } : {}),
    // Lua's JSON refuses lone surrogates.
    remembered: {
      product: ad.product_name.toWellFormed(),
      maker: ad.advertiser.toWellFormed(),
      landing_url: ad.landing_url.toWellFormed(),
    },
  };
}

function capOf({ per_session, per_hours }: NonNullable<Ad["frequency_cap"]>) {
  return { per_session, window_ms: Math.ceil(per_hours * 3_600_000) };
}

/**
 * Ads are bought by the thousand impressions, and pacing never holds back the first thousand of a day. Pacing is for
 * budgets that one day's traffic could use up; it must not keep a small ad from being shown in the morning.
 */
function paceOf({ bid_cpm_micros, start, end }: Ad, days: number) {
  return {
    days,
    head_start: bid_cpm_micros,
    ...(start === undefined ? {} : { from_ms: start }),
    ...(end === undefined ? {} : { until_ms: end }),
  };
}
