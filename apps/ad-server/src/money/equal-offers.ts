/**
 * Equal offers take turns. The id of a request draws an order among all ads, and of two equal offers the one that is
 * earlier in this order is shown first. So the same request and catalogue give the same order in any process.
 *
 * The draw is weighted, by the method of Efraimidis and Spirakis: each ad has the key u^(1/weight) with a random u, and
 * the greatest key is first. An ad of twice the weight is first twice as often. Here u is a hash of both ids, and the
 * key is the logarithm with its sign changed, so that no key is rounded to zero and the least key is first.
 */
export type DrawTurn = (adId: string, weight: number) => number;

const HASHES = 2 ** 32;
const FNV_BASIS = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** The order that a request draws. Of two ads, the one with the lower number is earlier. Weights are above 0. */
export function drawTurns(requestId: string): DrawTurn {
  const seed = addToHash(FNV_BASIS, requestId);
  return (adId, weight) => {
    // In the middle of its share of (0, 1), since 0 has no logarithm.
    const u = (mixed(addToHash(seed, adId)) + 0.5) / HASHES;
    return -Math.log(u) / weight;
  };
}

/**
 * FNV-1a over UTF-16 code units. It needs no secret: an advertiser chooses the ad's id before any request has one. A
 * cryptographic hash would take ten times as long, and there may be ten thousand candidates.
 */
function addToHash(hash: number, text: string): number {
  let added = hash;
  for (let index = 0; index < text.length; index += 1) {
    added = Math.imul(added ^ text.charCodeAt(index), FNV_PRIME);
  }
  return added;
}

/** The last step of MurmurHash3: each bit of the input changes half of the bits. FNV-1a alone leaves its high bits alike. */
function mixed(hash: number): number {
  const first = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  const second = Math.imul(first ^ (first >>> 13), 0xc2b2ae35);
  return (second ^ (second >>> 16)) >>> 0;
}
