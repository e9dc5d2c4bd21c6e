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
  take(limits: TokenLimits, nowMs: number, wanted = 1): number {
    this.#fill(limits, nowMs);
    const waitMs = this.#waitMs(limits);
    this.#tokens -= waitMs === 0 ? wanted : 0;
    return waitMs;
  }

  /** Takes tokens also if there is none: of something that is spent already. Returns 0 if there was one, or as `take` does. */
  owe(limits: TokenLimits, nowMs: number, spent: number): number {
    this.#fill(limits, nowMs);
    const wasEmpty = this.#waitMs(limits) > 0;
    this.#tokens -= spent;
    return wasEmpty ? this.#waitMs(limits) : 0;
  }

  #fill({ ratePerSecond, burst }: TokenLimits, nowMs: number): void {
    const gained = (Math.max(0, nowMs - this.#atMs) * ratePerSecond) / 1000;
    this.#tokens = Number.isFinite(gained) ? Math.min(burst, this.#tokens + gained) : burst;
    this.#atMs = nowMs;
  }

  #waitMs({ ratePerSecond }: TokenLimits): number {
    return this.#tokens >= 1 ? 0 : Math.ceil(((1 - this.#tokens) * 1000) / ratePerSecond);
  }
}

/** Either number may be infinite: then there is no limit. */
export interface TokenLimits {
  readonly ratePerSecond: number;
  readonly burst: number;
}
