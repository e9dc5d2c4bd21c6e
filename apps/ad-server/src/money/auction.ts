import type { Ad } from "../catalog/ad.ts";

/**
 * The auction for one impression: candidates in the order of relevance × bid, each with the second price.
 *
 * Money is whole micros per impression (a bid is per mille, so a thousandth of it, rounded down: nobody pays
 * more than was bid), and relevance is whole millionths, so that every product and quotient here is exact.
 *
 * 1. floor ≤ price ≤ bid.
 * 2. The price is the least at which the ad would still beat the next candidate; nobody can pay less by
 *    bidding something else, so the best bid is the true worth.
 * 3. A higher bid never loses a place. Ties go to the smaller ad id.
 *
 * An offer's price holds if all before it can't pay. Whether an ad has budget left is the store's to know, after
 * this: so an ad without budget can still set the price of the one before it.
 */
export interface Candidate {
  readonly ad: Ad;
  /** In (0, 1]; more counts as 1, and what isn't above 0 takes no part. */
  readonly relevance: number;
}

export interface Offer {
  readonly ad: Ad;
  /** Price of one impression. */
  readonly priceMicros: number;
}

export const IMPRESSIONS_PER_MILLE = 1000;
/** The store tries offers one by one, in one step: this bounds the step. */
export const OFFERS_MAX = 8;
const MILLION = 1_000_000;

interface Bidder {
  readonly ad: Ad;
  readonly bidMicros: number;
  readonly relevanceMillionths: number;
  /** Millionths of a micro that the ad is worth to the reader and the buyer together. */
  readonly rank: number;
}

/** The offers of an auction, best first, at most OFFERS_MAX; none if nobody bids as much as the floor. */
export function holdAuction(candidates: readonly Candidate[], floorCpmMicros: number): Offer[] {
  // Rounded up, and at least one micro: an impression below the floor isn't sold, nor one for nothing.
  const floorMicros = Math.max(1, Math.ceil(floorCpmMicros / IMPRESSIONS_PER_MILLE));
  const bidders = candidates
    .map(bidderOf)
    .filter(({ bidMicros, rank }) => bidMicros >= floorMicros && rank > 0)
    .sort(byRank);
  return bidders.slice(0, OFFERS_MAX).map((bidder, index) => ({
    ad: bidder.ad,
    priceMicros: Math.max(floorMicros, priceAgainst(bidder, bidders[index + 1])),
  }));
}

function bidderOf({ ad, relevance }: Candidate): Bidder {
  const bidMicros = Math.floor(ad.bid_cpm_micros / IMPRESSIONS_PER_MILLE);
  const isRelevant = relevance > 0;
  const relevanceMillionths = isRelevant ? Math.max(1, Math.round(Math.min(1, relevance) * MILLION)) : 0;
  return { ad, bidMicros, relevanceMillionths, rank: bidMicros * relevanceMillionths };
}

function byRank(one: Bidder, other: Bidder): number {
  return other.rank - one.rank || (comesFirst(one, other) ? -1 : 1);
}

/** Who wins a tie; by code units, so that it is the same on every machine. */
function comesFirst(one: Bidder, other: Bidder): boolean {
  return one.ad.id < other.ad.id;
}

/** The least whole price at which a bidder stays before the next one. */
function priceAgainst(bidder: Bidder, next: Bidder | undefined): number {
  if (next === undefined) {
    return 0;
  }
  const tying = next.rank / bidder.relevanceMillionths;
  return comesFirst(bidder, next) ? Math.ceil(tying) : Math.floor(tying) + 1;
}
