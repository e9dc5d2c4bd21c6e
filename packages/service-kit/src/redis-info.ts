/** What Redis says about itself: its version, whether it keeps data, its memory and connections. */
import { redisErrorKind } from "@adrelay/core";
import type { Redis } from "ioredis";
import { INFO_DENIED } from "./ioredis/checked-redis.ts";

/** What is known of a Redis. A member is undefined if our user may not ask. */
export interface RedisInfo {
  /** Such as "Redis 6.2.5" or "Valkey 9.1.2", for people. */
  readonly version: string | undefined;
  /** Undefined if the version is supported, or unknown. */
  readonly versionFault: string | undefined;
  readonly isAofOn: boolean | undefined;
  readonly evictionPolicy: string | undefined;
  readonly memory: RedisMemory | undefined;
  readonly clients: { readonly count: number; readonly max: number } | undefined;
}

export interface RedisMemory {
  readonly usedBytes: number;
  /** maxmemory, or the machine's memory if that isn't set; 0 if neither is known. Intake stops by it. */
  readonly limitBytes: number;
  readonly hasMaxmemory: boolean;
}

/** The oldest supported version: see docs/operations.md. Every Valkey is newer. */
const OLDEST = { major: 6, minor: 2 };

/** Asks INFO, which managed services allow, or CONFIG if INFO isn't permitted. */
export async function loadRedisInfo(redis: Redis): Promise<RedisInfo> {
  const info = await redis.info();
  if (info.includes(INFO_DENIED)) {
    const aof = await loadSetting(redis, "appendonly");
    const evictionPolicy = await loadSetting(redis, "maxmemory-policy");
    const isAofOn = aof === undefined ? undefined : aof === "yes";
    const unknown = { version: undefined, versionFault: undefined, memory: undefined, clients: undefined };
    return { ...unknown, isAofOn, evictionPolicy };
  }
  const number = (name: string) => Number(infoField(info, name) ?? 0);
  // Valkey reports the version of Redis that it is compatible with as well.
  const valkey = infoField(info, "valkey_version");
  const redisVersion = infoField(info, "redis_version") ?? "";
  return {
    version: valkey === undefined ? `Redis ${redisVersion}` : `Valkey ${valkey}`,
    versionFault: valkey === undefined ? faultOfVersion(redisVersion) : undefined,
    isAofOn: infoField(info, "aof_enabled") === "1",
    evictionPolicy: infoField(info, "maxmemory_policy"),
    memory: {
      usedBytes: number("used_memory"),
      limitBytes: number("maxmemory") || number("total_system_memory"),
      hasMaxmemory: number("maxmemory") > 0,
    },
    clients: { count: number("connected_clients"), max: number("maxclients") },
  };
}

function infoField(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
}

function faultOfVersion(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isOld = major < OLDEST.major || (major === OLDEST.major && minor < OLDEST.minor);
  return isOld
    ? `Redis ${version} is not supported: ${OLDEST.major}.${OLDEST.minor} is the oldest version`
    : undefined;
}

/**
 * Reads when Redis writes its append-only file to disk: always, everysec or no. Returns undefined if CONFIG is not allowed.
 * Rejects if Redis gave no answer, because that says nothing about its settings.
 */
export function loadSyncPolicy(redis: Redis): Promise<string | undefined> {
  return loadSetting(redis, "appendfsync");
}

async function loadSetting(redis: Redis, name: string): Promise<string | undefined> {
  const reply: unknown = await redis.config("GET", name).catch(undefinedIfNotAllowed);
  // The reply is a list or a map, depending on the version of the protocol.
  return new RegExp(`"${name}"[,:]"([a-z-]+)"`).exec(JSON.stringify(reply) ?? "")?.[1];
}

function undefinedIfNotAllowed(error: unknown): undefined {
  const kind = redisErrorKind(error);
  if (kind !== "no_permission" && kind !== "unknown_command") {
    throw error;
  }
}
