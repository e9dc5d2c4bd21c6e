import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { redisErrorKind } from "@adrelay/core";
import { OVERDUE, withDeadline } from "@adrelay/service-kit";
import type { Redis } from "ioredis";

/** What Redis answered. If it is `unavailable`, a write may still have taken effect; `reason` is for the log. */
export type Stored<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "unavailable"; readonly reason: string };

/** Bound of one call to Redis, so that a caller has its answer within a second. */
const CALL_TIMEOUT_MS = 900;

/**
 * Access to the ad server's data in Redis. While Redis is away or isn't durable, every call is refused. Each change is
 * one script, so a crash never leaves half of it.
 */
export class RedisStore {
  readonly #redis: Redis;
  readonly #durability: { readonly isDurable: boolean };
  readonly #scripts = new Map<string, Script>();

  constructor(redis: Redis, durability: { readonly isDurable: boolean }) {
    this.#redis = redis;
    this.#durability = durability;
  }

  /** Runs commands within a time limit. It never rejects. */
  async query<T>(command: (redis: Redis) => Promise<T>, timeoutMs = CALL_TIMEOUT_MS): Promise<Stored<T>> {
    if (!this.#durability.isDurable) {
      return { kind: "unavailable", reason: "Redis is away or not durable" };
    }
    try {
      const value = await withDeadline(command(this.#redis), timeoutMs);
      return value === OVERDUE ? { kind: "unavailable", reason: "Redis is slow" } : { kind: "ok", value };
    } catch (error) {
      return { kind: "unavailable", reason: error instanceof Error ? error.message : "unknown" };
    }
  }

  /** Runs the script `<name>.lua` by its hash, and sends its source only if Redis doesn't have it. */
  run(name: string, keys: readonly string[], args: readonly (string | number)[]): Promise<Stored<unknown>> {
    const { sha, source } = this.#scriptOf(name);
    return this.query(async (redis) => {
      try {
        return await redis.evalsha(sha, keys.length, ...keys, ...args);
      } catch (error) {
        if (redisErrorKind(error) !== "no_script") {
          throw error;
        }
        return redis.eval(source, keys.length, ...keys, ...args);
      }
    });
  }

  #scriptOf(name: string): Script {
    const known = this.#scripts.get(name);
    const script = known ?? loadScript(name);
    this.#scripts.set(name, script);
    return script;
  }
}

interface Script {
  readonly source: string;
  readonly sha: string;
}

/** Reads the script `<name>.lua`. */
export function loadScript(name: string): Script {
  const source = readLua(name);
  return { source, sha: createHash("sha1").update(source).digest("hex") };
}

/** Reads a Lua file of this folder, with each line `-- @include <name>` replaced by the file it names. */
function readLua(name: string): string {
  const text = readFileSync(new URL(`./${name}.lua`, import.meta.url), "utf8");
  return text.replace(/^-- @include ([\w-]+)$/gm, (_line, included: string) => readLua(included));
}
