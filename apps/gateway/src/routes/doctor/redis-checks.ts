import type { DoctorCheck } from "@adrelay/contract";
import { loadRedisInfo, loadSyncPolicy, type RedisInfo } from "@adrelay/service-kit";
import type { Redis } from "ioredis";

const MEMORY_SHARE_WARNED = 0.8;
const BYTES_PER_MIB = 1024 * 1024;

/** Whether Redis is there, and a place for acknowledgments. */
export async function checkRedis(redis: Redis): Promise<DoctorCheck[]> {
  const startedAtMs = performance.now();
  try {
    await redis.ping();
  } catch {
    return [{ name: "redis", status: "fail", detail: "does not answer: see REDIS_URL, and whether it runs" }];
  }
  const tookMs = Math.round(performance.now() - startedAtMs);
  const [standing, syncPolicy] = await Promise.all([loadRedisInfo(redis), loadSyncPolicy(redis)]);
  return [
    { name: "redis", status: "ok", detail: `answers in ${tookMs} ms` },
    checkAppendOnlyFile(standing, syncPolicy),
    checkEviction(standing),
    checkMemory(standing),
  ];
}

function checkAppendOnlyFile({ isAofOn }: RedisInfo, syncPolicy: string | undefined): DoctorCheck {
  const name = "redis_append_only_file";
  if (!isAofOn) {
    return { name, status: "fail", detail: "is off, so a restart of Redis loses data: set appendonly yes" };
  }
  switch (syncPolicy) {
    case "always":
      return { name, status: "ok", detail: "is on, appendfsync always" };
    case undefined:
      return {
        name,
        status: "warn",
        detail: "is on; Redis doesn't tell appendfsync, which should be always",
      };
    default:
      return {
        name,
        status: "warn",
        detail: `is on, appendfsync ${syncPolicy}: a crash of Redis can lose what it took in the last seconds; set always`,
      };
  }
}

function checkEviction({ evictionPolicy = "unknown" }: RedisInfo): DoctorCheck {
  const name = "redis_maxmemory_policy";
  return evictionPolicy === "noeviction"
    ? { name, status: "ok", detail: evictionPolicy }
    : { name, status: "fail", detail: `is ${evictionPolicy}, so Redis may drop data: set noeviction` };
}

function checkMemory({ usedBytes, limitBytes }: RedisInfo): DoctorCheck {
  const name = "redis_memory";
  const used = `${(usedBytes / BYTES_PER_MIB).toFixed(1)} MiB used`;
  if (limitBytes === 0) {
    return { name, status: "ok", detail: `${used}, no maxmemory set` };
  }
  const share = usedBytes / limitBytes;
  const detail = `${used}, ${Math.round(share * 100)} % of maxmemory`;
  return share > MEMORY_SHARE_WARNED
    ? { name, status: "warn", detail: `${detail}: when it is full, acknowledgments get 503` }
    : { name, status: "ok", detail };
}
