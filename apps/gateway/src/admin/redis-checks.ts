/** The doctor's checks of Redis: whether it answers, keeps data, accepts writes and permits what the relay needs. */
import type { DoctorCheck } from "@adrelay/contract";
import {
  describeForbidden,
  explainAway,
  loadRedisInfo,
  loadSyncPolicy,
  type RedisInfo,
} from "@adrelay/service-kit";
import { type Heartbeat, loadMissingRights, type RewriteRecord, type Store } from "@adrelay/store";
import type { Redis } from "ioredis";

/** Of the connections that Redis accepts. */
const SHARE_WARNED = 0.8;
const BYTES_PER_MIB = 1024 * 1024;

export interface RedisCheckDeps {
  readonly redis: Redis;
  readonly subscriber: Redis;
  readonly heartbeat: Pick<Heartbeat, "writes">;
  readonly rewrites: Pick<Store["rewrites"], "load">;
  readonly room: Pick<Store["room"], "accepts">;
}

/** Whether Redis answers, and whether it is safe for acknowledgments. */
export async function checkRedis({
  redis,
  subscriber,
  heartbeat,
  rewrites,
  room,
}: RedisCheckDeps): Promise<DoctorCheck[]> {
  const startedAtMs = performance.now();
  try {
    await redis.ping();
  } catch (error) {
    const why = await explainAway(redis, error);
    return [
      { name: "redis", status: "fail", detail: why ?? "does not answer: see REDIS_URL, and whether it runs" },
    ];
  }
  const tookMs = Math.round(performance.now() - startedAtMs);
  const [info, syncPolicy, rights, rewriteRecord] = await Promise.all([
    loadRedisInfo(redis),
    loadSyncPolicy(redis),
    checkRights(redis, subscriber),
    rewrites.load(),
  ]);
  return [
    checkServer(info, tookMs),
    checkWrites(heartbeat),
    checkAppendOnlyFile(info, syncPolicy),
    checkRewrites(rewriteRecord),
    checkEviction(info),
    checkMemory(info, room),
    checkConnections(info),
    rights,
  ];
}

function checkServer({ version, versionFault }: RedisInfo, tookMs: number): DoctorCheck {
  const answers = `answers in ${tookMs} ms`;
  return versionFault === undefined
    ? { name: "redis", status: "ok", detail: `${version ?? "Redis of an unknown version"}, ${answers}` }
    : { name: "redis", status: "fail", detail: versionFault };
}

/** As this process' last heartbeat has found it. */
function checkWrites({ writes }: Pick<Heartbeat, "writes">): DoctorCheck {
  const name = "redis_writes";
  switch (writes.kind) {
    case "accepted":
      return { name, status: "ok", detail: "are accepted" };
    case "full":
      return { name, status: "fail", detail: `Redis ${writes.why}` };
    case "refused":
      return {
        name,
        status: "fail",
        detail:
          writes.why === undefined ? "got no answer: the gateway's log says why" : `Redis ${writes.why}`,
      };
    default:
      return writes satisfies never;
  }
}

function checkAppendOnlyFile({ isAofOn }: RedisInfo, syncPolicy: string | undefined): DoctorCheck {
  const name = "redis_append_only_file";
  if (isAofOn === undefined) {
    return { name, status: "warn", detail: "Redis doesn't show whether it is on: permit INFO" };
  }
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
        detail: "is on; Redis doesn't show appendfsync, which should be always",
      };
    default:
      return {
        name,
        status: "warn",
        detail: `is on, appendfsync ${syncPolicy}: a crash of Redis can lose the writes of the last seconds; set always`,
      };
  }
}

const MS_PER_HOUR = 3_600_000;

/** Whether what has left Redis leaves its disk, too. */
function checkRewrites({ sinceMs, finishedMs, intervalMs, isDenied }: RewriteRecord): DoctorCheck {
  const name = "redis_rewrites";
  if (isDenied) {
    const why = "Redis doesn't permit BGREWRITEAOF (or BGSAVE), so texts stay on its disk after delivery";
    return { name, status: "warn", detail: `${why}: permit it, or see docs/privacy.md` };
  }
  const last =
    finishedMs === undefined ? "none yet" : `the last one of ${new Date(finishedMs).toISOString()}`;
  if (sinceMs === undefined || intervalMs === 0) {
    const why = sinceMs === undefined ? "no worker has looked after them" : "AOF_REWRITE_INTERVAL is off";
    return { name, status: "ok", detail: `${last}; ${why}` };
  }
  const isLate = Date.now() - (finishedMs ?? sinceMs) > 2 * intervalMs;
  const detail = `${last}, every ${Math.round((10 * intervalMs) / MS_PER_HOUR) / 10} h`;
  return isLate
    ? {
        name,
        status: "warn",
        detail: `${detail}: overdue, so texts stay on Redis' disk; see the workers' logs`,
      }
    : { name, status: "ok", detail };
}

function checkEviction({ evictionPolicy }: RedisInfo): DoctorCheck {
  const name = "redis_maxmemory_policy";
  switch (evictionPolicy) {
    case "noeviction":
      return { name, status: "ok", detail: evictionPolicy };
    case undefined:
      return { name, status: "warn", detail: "Redis doesn't show it; it must be noeviction" };
    default:
      return { name, status: "fail", detail: `is ${evictionPolicy}, so Redis may drop data: set noeviction` };
  }
}

/** Of what intake accepts, the room knows the latest second. */
export function checkMemory(
  { memory }: Pick<RedisInfo, "memory">,
  room: Pick<Store["room"], "accepts">,
): DoctorCheck {
  const name = "redis_memory";
  if (memory === undefined) {
    return { name, status: "warn", detail: "Redis doesn't show it: permit INFO" };
  }
  const describe = (effect: string) => `${describeUsed(memory)}${effect}${hintOf(memory)}`;
  switch (room.accepts) {
    case "all":
      return { name, status: memory.hasMaxmemory ? "ok" : "warn", detail: describe("") };
    case "known":
      return { name, status: "warn", detail: describe(": acknowledgments of unknown ids get 503") };
    case "none":
      return {
        name,
        status: "fail",
        detail: describe(": acknowledgments get 503, and what is queued goes out"),
      };
    default:
      return room.accepts satisfies never;
  }
}

type Memory = NonNullable<RedisInfo["memory"]>;

function describeUsed({ usedBytes, limitBytes, hasMaxmemory }: Memory): string {
  const used = `${(usedBytes / BYTES_PER_MIB).toFixed(1)} MiB used`;
  const of = hasMaxmemory ? "maxmemory" : "the machine's memory";
  return limitBytes === 0 ? used : `${used}, ${Math.round((100 * usedBytes) / limitBytes)} % of ${of}`;
}

const hintOf = ({ hasMaxmemory }: Memory) =>
  hasMaxmemory
    ? ""
    : "; no maxmemory is set, so quotas are shares of the machine's memory: set it, as docs/sizing.md says";

function checkConnections({ clients }: RedisInfo): DoctorCheck {
  const name = "redis_connections";
  if (clients === undefined || clients.max === 0) {
    return { name, status: "ok", detail: "Redis doesn't show how many it accepts" };
  }
  const detail = `${clients.count} of ${clients.max} (maxclients)`;
  if (clients.count >= clients.max) {
    const why = "none is left, so processes that lose theirs can't connect: raise maxclients, or close some";
    return { name, status: "fail", detail: `${detail}: ${why}` };
  }
  return clients.count > clients.max * SHARE_WARNED
    ? { name, status: "warn", detail: `${detail}: when none is left, processes can't connect` }
    : { name, status: "ok", detail };
}

async function checkRights(redis: Redis, subscriber: Redis): Promise<DoctorCheck> {
  const name = "redis_rights";
  const { needed, wanted } = await loadMissingRights(redis, subscriber);
  if (needed.length > 0) {
    return { name, status: "fail", detail: describeForbidden(needed) };
  }
  return wanted.length > 0
    ? { name, status: "warn", detail: describeForbidden(wanted) }
    : { name, status: "ok", detail: "all that the relay needs" };
}
