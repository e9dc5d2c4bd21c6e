import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { OVERDUE, withDeadline } from "@adrelay/service-kit";
import type { Redis } from "ioredis";

/** A result of the store. `unavailable` leaves open whether a write took effect; `reason` is for the log. */
export type Stored<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "unavailable"; readonly reason: string };

/** Bound of one call of the store, so that a caller has its answer within a second. */
const STORE_TIMEOUT_MS = 900;

/**
 * The way to the ad server's books in Redis. While Redis is away or isn't durable nothing is taken; each change
 * is one script, so that a crash leaves no half of it.
 */
export class Books {
  readonly #redis: Redis;
  readonly #durability: { readonly isDurable: boolean };
  readonly #scripts = new Map<string, Script>();

  constructor(redis: Redis, durability: { readonly isDurable: boolean }) {
    this.#redis = redis;
    this.#durability = durability;
  }

  async ask<T>(command: (redis: Redis) => Promise<T>, timeoutMs = STORE_TIMEOUT_MS): Promise<Stored<T>> {
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

  /** Runs a script of `scripts/` by name: by its hash, and with its text only where Redis doesn't know it. */
  run(name: string, keys: readonly string[], args: readonly (string | number)[]): Promise<Stored<unknown>> {
    const { sha, source } = this.#scriptOf(name);
    return this.ask(async (redis) => {
      try {
        return await redis.evalsha(sha, keys.length, ...keys, ...args);
      } catch (error) {
        // Redis names the kind of an error in its first word.
        if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) {
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

function loadScript(name: string): Script {
  const source = readLua(name);
  return { source, sha: createHash("sha1").update(source).digest("hex") };
}

function readLua(path: string): string {
  const text = readFileSync(new URL(`./scripts/${path}.lua`, import.meta.url), "utf8");
  return text.replace(/^-- @include ([\w-]+)$/gm, (_line, name: string) => readLua(`includes/${name}`));
}
