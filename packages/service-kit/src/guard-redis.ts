/** Starts the guard of a connection, and shows as metrics what it knows. */
import { explainRedisError } from "@adrelay/core";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import { CannotStartError } from "./lifecycle.ts";
import { explainAway, isWrongDatabase, waitForRedis } from "./redis.ts";
import { type DurabilityCheck, DurabilityGuard, type GuardRules } from "./redis-durability.ts";

/** Redis must not be used for acknowledgments. The message says what to change. */
class RedisNotDurableError extends CannotStartError {
  override readonly name = "RedisNotDurableError";
}

/** Redis can't be used with these settings. The message says why. */
class RedisUnusableError extends CannotStartError {
  override readonly name = "RedisUnusableError";
}

const FIRST_CONNECTION_TIMEOUT_MS = 5000;

/**
 * Starts a guard for a connection, and rejects if Redis is there and can't be used, or isn't durable. If Redis is away,
 * the service may start: the guard checks Redis once it is there, and until then no acknowledgment is accepted.
 */
export async function guardRedis(redis: Redis, rules: GuardRules, log: Logger): Promise<DurabilityGuard> {
  const guard = new DurabilityGuard(redis, rules, log);
  guard.start();
  const waited = await waitForRedis(redis, FIRST_CONNECTION_TIMEOUT_MS);
  const checked: DurabilityCheck =
    waited.kind === "ready" ? await guard.check() : { kind: "unanswered", error: waited.error };
  switch (checked.kind) {
    case "durable":
      return guard;
    case "unanswered":
      if (isWrongDatabase(checked.error)) {
        guard.stop();
        throw new RedisUnusableError(`Redis ${explainRedisError(checked.error)}`);
      }
      log.warn({
        event: "redis_away_at_start",
        why: await explainAway(redis, checked.error),
        err: checked.error,
      });
      return guard;
    case "unusable":
      guard.stop();
      throw new RedisUnusableError(`Redis can't be used: ${checked.faults.join("; ")}`);
    case "faulty":
      guard.stop();
      throw new RedisNotDurableError(
        `Redis is not durable: ${checked.faults.join("; ")}. Set REDIS_DURABILITY=warn to start in spite of that.`,
      );
    default:
      return checked satisfies never;
  }
}

/** Registers `adrelay_redis_durable`: whether this process may accept acknowledgments, as far as Redis is concerned. */
export function reportDurability(registry: Registry, guard: Pick<DurabilityGuard, "isDurable">): void {
  new Gauge({
    name: "adrelay_redis_durable",
    help: "1 if Redis answers, is durable and accepts writes; 0 if not: acknowledgments then get 503.",
    registers: [registry],
    collect() {
      this.set(guard.isDurable ? 1 : 0);
    },
  });
}

/** Registers the two gauges of Redis' memory. They have no value while it isn't known. */
export function reportMemory(registry: Registry, guard: Pick<DurabilityGuard, "memory">): void {
  new Gauge({
    name: "adrelay_redis_memory_used_bytes",
    help: "Memory that Redis uses, as of the last check. Left out if Redis doesn't say.",
    registers: [registry],
    collect() {
      this.remove();
      setIfKnown(this, guard.memory?.usedBytes);
    },
  });
  new Gauge({
    name: "adrelay_redis_memory_limit_bytes",
    help: "Redis' maxmemory, or its machine's memory if that isn't set, as of the last check; 0 if neither is known. From 95 % of it on, acknowledgments get 503.",
    registers: [registry],
    collect() {
      this.remove();
      setIfKnown(this, guard.memory?.limitBytes);
    },
  });
}

function setIfKnown(gauge: Gauge, value: number | undefined): void {
  if (value !== undefined) {
    gauge.set(value);
  }
}
