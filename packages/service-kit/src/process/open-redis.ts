import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { DurabilityGuard } from "../durability-guard.ts";
import { waitForRedis } from "../redis.ts";
import type { DurabilityMode } from "../redis-durability.ts";

/** A Redis that must not be used for acknowledgments; the message says what to change. */
export class RedisNotDurableError extends Error {
  override readonly name = "RedisNotDurableError";
}

const FIRST_CONNECTION_TIMEOUT_MS = 5000;

/**
 * Guards a connection: refuses a Redis that isn't durable. A Redis that is away is no reason not to start:
 * it is checked when it comes, and until then nothing is taken.
 */
export async function guardRedis(redis: Redis, mode: DurabilityMode, log: Logger): Promise<DurabilityGuard> {
  const guard = new DurabilityGuard(redis, mode, log);
  const isThere = await waitForRedis(redis, FIRST_CONNECTION_TIMEOUT_MS);
  const checked = isThere ? await guard.check() : ({ kind: "unanswered" } as const);
  switch (checked.kind) {
    case "durable":
      return guard;
    case "unanswered":
      log.warn({ event: "redis_away_at_start" });
      return guard;
    case "faulty":
      throw new RedisNotDurableError(
        `Redis is not durable: ${checked.faults.join("; ")}. Set REDIS_DURABILITY=warn to go on all the same.`,
      );
    default:
      return checked satisfies never;
  }
}
