import { createHash } from "node:crypto";
import type { AdResponseId } from "@adrelay/contract";

/** All keys of the ad server share this hash tag, so that a Redis Cluster runs scripts over several of them. */
const TAG = "{adserver}";

/**
 * Hash of one ad response: outcome, publisher, served_at_ms and posts. If an ad was served, also ad, product, maker,
 * landing_url and reservation (as text, see money.lua). Once it is acknowledged, also ack_id, verdict, paid_micros and,
 * if the ad was used, disclosed (1 or 0) and link (landing, foreign or none).
 */
export function responseKey(id: AdResponseId): string {
  return `${TAG}:response:${id}`;
}

/**
 * Hash of counts since the first start: `injections:<outcome>`, `acknowledgments:<verdict>`,
 * `disclosures:<true|false>`, `links:<landing|foreign|none>`, `auctions:<won or the obstacle to the best offer>`,
 * `passed_over:<obstacle>`, `expired` and `unpaid`. It also has the sums over all ads, `spend_micros` and
 * `reserved_micros`.
 */
export const COUNTS_KEY = `${TAG}:counts`;

/** Never there: what our user may do is tried on it. */
export const RIGHTS_KEY = `${TAG}:rights`;

/** Prefixes of the call counts for rate limits. Each count lives as long as its window. */
export const RATE_PREFIX = { steady: `${TAG}:rate`, burst: `${TAG}:burst` } as const;

/** Sorted set of open reservations, by the end of their acknowledgment window. */
const RESERVATIONS_KEY = `${TAG}:reservations`;
/** Set of all ads that ever had money reserved. */
export const ADS_KEY = `${TAG}:ads`;
/** Set of all publishers that ever asked for an ad. */
export const PUBLISHERS_KEY = `${TAG}:publishers`;

const AD_PREFIX = `${TAG}:ad:`;
const REPORT_PREFIX = `${TAG}:report:`;
/**
 * `<ad>:<session hash>`: sorted set of response ids by the time they were served. It lives as long as the cap's
 * window.
 */
const CAP_PREFIX = `${TAG}:cap:`;

/** Sorted set of ads by the time at which a session was last shown them; see just-shown.lua. It lives for half an hour. */
export function shownKey(session: string): string {
  return `${TAG}:shown:${session}`;
}

/** Hash of an ad's money in micros: spent, reserved, and today (committed on the day in `day`); and its advertiser. */
export function adKey(ad: string): string {
  return `${AD_PREFIX}${ad}`;
}

/** Hash of one day (its number since 1970, UTC) and one publisher: `<ad, or nothing>|<counter>` to a number. */
export function reportKey(day: number, publisher: string): string {
  return `${REPORT_PREFIX}${day}:${publisher}`;
}

/** The first seven keys of every script, in the order of money.lua. */
export const MONEY_KEYS = [
  COUNTS_KEY,
  RESERVATIONS_KEY,
  ADS_KEY,
  PUBLISHERS_KEY,
  AD_PREFIX,
  REPORT_PREFIX,
  CAP_PREFIX,
] as const;

/** 128 bits in hexadecimal digits, so that two sessions never share a hash. */
const SESSION_HASH_CHARS = 32;

/**
 * Names a session in Redis. The session's id itself belongs to a user and is never stored. The publisher goes into the
 * hash too, so that equal ids of two publishers stay apart.
 */
export function sessionHashOf(publisher: string, sessionId: string): string {
  const digest = createHash("sha256").update(`${publisher}|${sessionId}`, "utf8").digest("hex");
  return digest.slice(0, SESSION_HASH_CHARS);
}
