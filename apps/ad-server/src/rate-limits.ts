import type { Redis } from "ioredis";
import { BurstyRateLimiter, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import type { FaultOperation } from "./faults/fault-rules.ts";
import { RATE_PREFIX } from "./store/keys.ts";

export interface RateLimitSettings {
  /** Calls of one operation that a publisher has in any second; 0 is no limit. */
  readonly perSecond: number;
  /** Calls on top of that in any ten seconds. */
  readonly burst: number;
}

export type Admission =
  | { readonly kind: "admitted" }
  | { readonly kind: "limited"; readonly retryAfterS: number }
  | { readonly kind: "unavailable"; readonly reason: string };

const BURST_WINDOW_S = 10;

/** How often each publisher may call, counted in Redis for all processes together; each operation by itself. */
export class RateLimits {
  readonly #limiter: Pick<RateLimiterRedis, "consume"> | BurstyRateLimiter | undefined;

  constructor(redis: Redis, { perSecond, burst }: RateLimitSettings) {
    if (perSecond > 0) {
      const steady = new RateLimiterRedis({
        storeClient: redis,
        keyPrefix: RATE_PREFIX.steady,
        points: perSecond,
        duration: 1,
      });
      this.#limiter =
        burst === 0
          ? steady
          : new BurstyRateLimiter(
              steady,
              new RateLimiterRedis({
                storeClient: redis,
                keyPrefix: RATE_PREFIX.burst,
                points: burst,
                duration: BURST_WINDOW_S,
              }),
            );
    }
  }

  /** Counts one call, and says whether it may go on. */
  async admit(operation: FaultOperation, publisher: string): Promise<Admission> {
    try {
      await this.#limiter?.consume(`${operation}:${publisher}`);
      return { kind: "admitted" };
    } catch (refusal) {
      return refusal instanceof RateLimiterRes
        ? { kind: "limited", retryAfterS: Math.max(1, Math.ceil(refusal.msBeforeNext / 1000)) }
        : { kind: "unavailable", reason: refusal instanceof Error ? refusal.message : "unknown" };
    }
  }
}
