import { createHash, timingSafeEqual } from "node:crypto";
import type { Redis } from "ioredis";
import { BurstyRateLimiter, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import type { FaultOperation } from "./faults/fault-rules.ts";
import { RATE_PREFIX } from "./store/keys.ts";

/** A publisher's name is this many characters of its first key's digest: enough to distinguish all keys. */
const PUBLISHER_CHARS = 32;

/** Whether a key may call. A revoked key was valid before, and its caller gets a separate error. */
type KeyStatus =
  | { readonly kind: "good"; readonly publisher: string }
  | { readonly kind: "revoked" }
  | { readonly kind: "unknown" };

/** The keys that may call. Only their digests are kept, and every comparison takes the same time. */
export class ApiKeys {
  readonly #known: readonly { readonly digest: Buffer; readonly publisher: string }[];
  readonly #revoked: readonly Buffer[];

  /**
   * Each publisher has one or several keys. The first one names it in all data, also if it is revoked. A key that is in both
   * lists is revoked.
   */
  constructor(publishers: readonly (readonly string[])[], revokedKeys: readonly string[] = []) {
    this.#known = publishers.flatMap((keys) =>
      keys.map((key) => ({ digest: digestOf(key), publisher: publisherOfKey(keys[0] ?? key) })),
    );
    this.#revoked = revokedKeys.map(digestOf);
  }

  statusOf(key: string | undefined): KeyStatus {
    const digest = digestOf(key ?? "");
    // All keys are compared, even after a match: the time must not show which key matched.
    const matches = this.#known.filter((known) => timingSafeEqual(known.digest, digest));
    const revoked = this.#revoked.filter((known) => timingSafeEqual(known, digest));
    if (revoked.length > 0) {
      return { kind: "revoked" };
    }
    const [match] = matches;
    return match === undefined ? { kind: "unknown" } : { kind: "good", publisher: match.publisher };
  }

  /** The publisher that a key belongs to; undefined if the key is absent, unknown or revoked. */
  publisherOf(key: string | undefined): string | undefined {
    const status = this.statusOf(key);
    return status.kind === "good" ? status.publisher : undefined;
  }
}

function publisherOfKey(key: string): string {
  return digestOf(key).toString("hex").slice(0, PUBLISHER_CHARS);
}

function digestOf(key: string): Buffer {
  return createHash("sha256").update(key, "utf8").digest();
}

interface RateLimitSettings {
  /** Calls per second that a publisher may make of each operation; 0 is no limit. */
  readonly perSecond: number;
  /** Calls that a publisher may make beyond that in any ten seconds. */
  readonly burst: number;
}

type RateDecision =
  | { readonly kind: "admitted" }
  | { readonly kind: "limited"; readonly retryAfterS: number }
  | { readonly kind: "unavailable"; readonly reason: string };

const BURST_WINDOW_S = 10;

/**
 * Counts a call as the library's own script does, also on a full Redis: acknowledgments are taken then (docs/adr/0040). The DEL
 * changes nothing.
 */
const COUNT_SCRIPT = `
  redis.call('DEL', KEYS[1] .. ':none')
  redis.call('SET', KEYS[1], 0, 'EX', ARGV[2], 'NX')
  return {redis.call('INCRBY', KEYS[1], ARGV[1]), redis.call('PTTL', KEYS[1])}`;

/** Limits how often each publisher calls each operation. Redis counts the calls of all processes together. */
export class RateLimits {
  readonly #limiter: Pick<RateLimiterRedis, "consume"> | BurstyRateLimiter | undefined;

  constructor(redis: Redis, { perSecond, burst }: RateLimitSettings) {
    if (perSecond > 0) {
      const shared = { storeClient: redis, customIncrTtlLuaScript: COUNT_SCRIPT };
      const steady = new RateLimiterRedis({
        ...shared,
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
                ...shared,
                keyPrefix: RATE_PREFIX.burst,
                points: burst,
                duration: BURST_WINDOW_S,
              }),
            );
    }
  }

  /** Counts one call and decides whether it is within the limit. */
  async admit(operation: FaultOperation, publisher: string): Promise<RateDecision> {
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
