import { createHash } from "node:crypto";
import type { Ad } from "../catalog/ad.ts";
import type { Offer } from "./auction.ts";

/** `even` spreads an ad's budget over its flight; `asap` sells it as fast as it goes. */
export const PACING_MODES = ["even", "asap"] as const;

export interface Pacing {
  readonly mode: (typeof PACING_MODES)[number];
  /** Days over which a budget is spread that has no end of its own. */
  readonly days: number;
}

/** An offer in the words of record-injection.lua. Absent: no cap, no pacing. */
export interface OfferTerms {
  readonly ad: string;
  readonly advertiser: string;
  /** Price of this impression, and all that may ever be spent: micros. */
  readonly price: number;
  readonly budget: number;
  readonly cap?: { readonly per_session: number; readonly window_ms: number };
  readonly pace?: {
    readonly days: number;
    readonly from_ms?: number;
    readonly until_ms?: number;
    /** Micros that pacing leaves free every day. */
    readonly head_start: number;
  };
  /** Fields that the response keeps for its acknowledgment. */
  readonly remembered: Readonly<Record<string, string>>;
}

/** What the store needs to know of an offer to take it or pass it over. */
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
 * A thousand impressions, the unit in which ads are bought, are never held back on any day: pacing is for
 * budgets that a day's traffic could use up, and a small ad must not wait for its hundredth of a morning.
 */
function paceOf({ bid_cpm_micros, start, end }: Ad, days: number) {
  return {
    days,
    head_start: bid_cpm_micros,
    ...(start === undefined ? {} : { from_ms: start }),
    ...(end === undefined ? {} : { until_ms: end }),
  };
}

/** Letters of a session's mark: 128 bits, so that two sessions never share one. */
const MARK_CHARS = 32;

/** What stands for a session in Redis. Its id is the user's and is not stored; publishers' ids don't mix. */
export function sessionMarkOf(publisher: string, sessionId: string): string {
  return createHash("sha256").update(`${publisher}|${sessionId}`, "utf8").digest("hex").slice(0, MARK_CHARS);
}
