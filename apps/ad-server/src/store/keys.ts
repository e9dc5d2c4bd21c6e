import type { AdResponseId } from "@adrelay/contract";

/** Every key of the ad server shares this hash tag, so that a Redis Cluster takes scripts over two keys. */
const TAG = "{adserver}";

/**
 * Hash of one ad response: outcome, publisher, product, advertiser, landing_url, ad, served_at_ms, posts, ack_id,
 * verdict, disclosed (1 or 0, of those used).
 */
export function responseKey(id: AdResponseId): string {
  return `${TAG}:response:${id}`;
}

/** Counts of calls, for rate limits; each lives for its window. */
export const RATE_PREFIX = { steady: `${TAG}:rate`, burst: `${TAG}:burst` } as const;

/** Hash of counts since the first start: `injections:<outcome>`, `acknowledgments:<verdict>` and `disclosures:<true|false>`. */
export const COUNTS_KEY = `${TAG}:counts`;
