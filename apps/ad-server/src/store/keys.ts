import type { AdResponseId } from "@adrelay/contract";

/** Every key of the ad server shares this hash tag, so that a Redis Cluster takes scripts over several keys. */
const TAG = "{adserver}";

/**
 * Hash of one ad response: outcome, publisher, served_at_ms, posts; of a 200 also ad, product, maker,
 * landing_url and reservation (as text, see books.lua), and once acknowledged ack_id, verdict, paid_micros and
 * disclosed (1 or 0, of an ad that was used).
 */
export function responseKey(id: AdResponseId): string {
  return `${TAG}:response:${id}`;
}

/**
 * Hash of counts since the first start: `injections:<outcome>`, `acknowledgments:<verdict>`, `disclosures:<true|false>`,
 * `auctions:<won or what stopped the best offer>`, `passed_over:<why>`, `expired` and `unpaid`; and the sums over
 * all ads, `spend_micros` and `reserved_micros`.
 */
export const COUNTS_KEY = `${TAG}:counts`;

/** Counts of calls, for rate limits; each lives for its window. */
export const RATE_PREFIX = { steady: `${TAG}:rate`, burst: `${TAG}:burst` } as const;

/** Sorted set of open reservations, by the end of their acknowledgment window. */
const RESERVATIONS_KEY = `${TAG}:reservations`;
/** Sets of the ads that ever had money reserved, and of the publishers that ever asked. */
export const ADS_KEY = `${TAG}:ads`;
export const PUBLISHERS_KEY = `${TAG}:publishers`;

const AD_PREFIX = `${TAG}:ad:`;
const REPORT_PREFIX = `${TAG}:report:`;
/** `<ad>:<mark of the session>`: sorted set of response ids by when they were served; lives for the cap's window. */
const CAP_PREFIX = `${TAG}:cap:`;

/** Hash of an ad's money, all in micros: spent, reserved, today (committed on `day`); and its advertiser. */
export function adKey(ad: string): string {
  return `${AD_PREFIX}${ad}`;
}

/** Hash of a day (its number since 1970, UTC) and a publisher: `<ad, or nothing>|<counter>` to a number. */
export function reportKey(day: number, publisher: string): string {
  return `${REPORT_PREFIX}${day}:${publisher}`;
}

/** The keys of every script on money, in the order of books.lua. */
export const BOOK_KEYS = [
  COUNTS_KEY,
  RESERVATIONS_KEY,
  ADS_KEY,
  PUBLISHERS_KEY,
  AD_PREFIX,
  REPORT_PREFIX,
  CAP_PREFIX,
] as const;
