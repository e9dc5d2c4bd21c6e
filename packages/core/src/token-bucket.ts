/** A token bucket: a rate on average, and a burst after a pause. */

/** What is left of the burst, as of a time. A new bucket is full. */
export class TokenBucket {
  #tokens = Number.POSITIVE_INFINITY;
  #atMs = 0;

  /**
   * Takes tokens if there is one. The limits may differ from call to call. More may be taken than there are: the bucket
   * then owes the rest, so on average the rate holds.
   *
   * @param nowMs by a clock that never goes back
   * @returns 0, or in how many milliseconds there is a token if nothing else takes it
   */
  take({ ratePerSecond, burst }: TokenLimits, nowMs: number, wanted = 1): number {
    const gained = (Math.max(0, nowMs - this.#atMs) * ratePerSecond) / 1000;
    const tokens = Number.isFinite(gained) ? Math.min(burst, this.#tokens + gained) : burst;
    this.#atMs = nowMs;
    if (tokens >= 1) {
      this.#tokens = tokens - wanted;
      return 0;
    }
    this.#tokens = tokens;
    return Math.ceil(((1 - tokens) * 1000) / ratePerSecond);
  }
}

/** Either number may be infinite: then there is no limit. */
export interface TokenLimits {
  readonly ratePerSecond: number;
  readonly burst: number;
}
