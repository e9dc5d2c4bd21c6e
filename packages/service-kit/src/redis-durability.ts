import type { Redis } from "ioredis";

export const DURABILITY_MODES = ["require", "strict", "warn"] as const;
export type DurabilityMode = (typeof DURABILITY_MODES)[number];

/** What INFO and CONFIG tell of a Redis as a place for acknowledgments. */
export interface RedisStanding {
  readonly isAofOn: boolean;
  readonly evictionPolicy: string | undefined;
  readonly usedBytes: number;
  /** 0 for no limit. */
  readonly limitBytes: number;
}

/** Reads INFO alone, which managed services allow. */
export async function loadRedisStanding(redis: Redis): Promise<RedisStanding> {
  const info = await redis.info();
  return {
    isAofOn: infoField(info, "aof_enabled") === "1",
    evictionPolicy: infoField(info, "maxmemory_policy"),
    usedBytes: Number(infoField(info, "used_memory") ?? 0),
    limitBytes: Number(infoField(info, "maxmemory") ?? 0),
  };
}

/**
 * When Redis syncs its append-only file: always, everysec or no; undefined where CONFIG is not allowed. Rejects if
 * Redis didn't answer: that says nothing of its settings.
 */
export async function loadSyncPolicy(redis: Redis): Promise<string | undefined> {
  const reply: unknown = await redis.config("GET", "appendfsync").catch(undefinedIfForbidden);
  // A list or a map, by the version of the protocol.
  return /"(always|everysec|no)"/.exec(JSON.stringify(reply) ?? "")?.[1];
}

/** Redis names the kind of an error in its first words. */
function undefinedIfForbidden(error: unknown): undefined {
  const isForbidden = error instanceof Error && /^(NOPERM|ERR unknown command)/.test(error.message);
  if (!isForbidden) {
    throw error;
  }
}

/**
 * What keeps this Redis from being a place for acknowledgments, in words; empty if nothing does.
 * `strict` also wants `appendfsync always`: with `everysec` a crash of Redis can lose what it answered
 * in the last seconds.
 */
export async function durabilityFaults(redis: Redis, mode: DurabilityMode): Promise<string[]> {
  const { isAofOn, evictionPolicy } = await loadRedisStanding(redis);
  const faults: string[] = [];
  if (!isAofOn) {
    faults.push("the append-only file is off: set appendonly yes");
  }
  if (evictionPolicy !== "noeviction") {
    faults.push(`maxmemory-policy is ${evictionPolicy ?? "unknown"}: set noeviction`);
  }
  if (mode === "strict" && (await loadSyncPolicy(redis)) !== "always") {
    faults.push("appendfsync is not always, which REDIS_DURABILITY=strict wants");
  }
  return faults;
}

function infoField(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
}
