import type { Redis } from "ioredis";

export const DURABILITY_MODES = ["require", "strict", "warn"] as const;
export type DurabilityMode = (typeof DURABILITY_MODES)[number];

/**
 * What keeps this Redis from being a place for acknowledgments, in words; empty if nothing does.
 * `strict` also wants `appendfsync always`: with `everysec` a crash of Redis can lose what it answered
 * in the last seconds.
 *
 * Reads INFO, which managed services allow, and CONFIG only for what INFO lacks.
 */
export async function durabilityFaults(redis: Redis, mode: DurabilityMode): Promise<string[]> {
  const info = await redis.info();
  const faults: string[] = [];
  if (infoField(info, "aof_enabled") !== "1") {
    faults.push("the append-only file is off: set appendonly yes");
  }
  const policy = infoField(info, "maxmemory_policy");
  if (policy !== "noeviction") {
    faults.push(`maxmemory-policy is ${policy ?? "unknown"}: set noeviction`);
  }
  if (mode === "strict" && !(await syncsAlways(redis))) {
    faults.push("appendfsync is not always, which REDIS_DURABILITY=strict wants");
  }
  return faults;
}

function infoField(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
}

async function syncsAlways(redis: Redis): Promise<boolean> {
  const reply: unknown = await redis.config("GET", "appendfsync");
  return JSON.stringify(reply).includes('"always"');
}
