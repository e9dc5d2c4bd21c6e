/** The checks of the doctor, but for the providers. Each says what is wrong and what to do. */
import type { DoctorCheck } from "@adrelay/contract";
import { listAccounts, type Publisher } from "@adrelay/provider";
import { loadRedisInfo, loadSyncPolicy, type RedisInfo } from "@adrelay/service-kit";
import type { Heartbeat, LedgerSnapshot, RelayProcess, Store } from "@adrelay/store";
import type { Redis } from "ioredis";

const MEMORY_SHARE_WARNED = 0.8;
const BYTES_PER_MIB = 1024 * 1024;

/** Whether Redis answers, and whether it is safe for acknowledgments. */
export async function checkRedis(redis: Redis): Promise<DoctorCheck[]> {
  const startedAtMs = performance.now();
  try {
    await redis.ping();
  } catch {
    return [{ name: "redis", status: "fail", detail: "does not answer: see REDIS_URL, and whether it runs" }];
  }
  const tookMs = Math.round(performance.now() - startedAtMs);
  const [info, syncPolicy] = await Promise.all([loadRedisInfo(redis), loadSyncPolicy(redis)]);
  return [
    { name: "redis", status: "ok", detail: `${info.version}, answers in ${tookMs} ms` },
    checkAppendOnlyFile(info, syncPolicy),
    checkEviction(info),
    checkMemory(info),
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

const CLOCK_SKEW_WARNED_MS = 1000;

/** Whether there are workers, whether all processes are of one version, and whether their clocks are right. */
export async function checkProcesses(heartbeat: Pick<Heartbeat, "loadProcesses">): Promise<DoctorCheck[]> {
  const processes = await heartbeat.loadProcesses();
  return [checkWorkers(processes), checkVersions(processes), checkClocks(processes)];
}

/** Whether Redis has lost data in the last 24 hours. */
export async function checkDataLoss(heartbeat: Pick<Heartbeat, "loadLoss">): Promise<DoctorCheck[]> {
  const loss = await heartbeat.loadLoss();
  const name = "data_loss";
  return [
    loss === undefined
      ? { name, status: "ok", detail: "none found in the last 24 hours" }
      : { name, status: "warn", detail: `at ${new Date(loss.atMs).toISOString()}: ${loss.detail}` },
  ];
}

/** Whether a process that has another URL or key of a provider than this gateway can't use it. */
export async function checkForeignCircuits({
  store,
  publishers,
}: {
  readonly store: Pick<Store, "circuits">;
  readonly publishers: readonly Publisher[];
}): Promise<DoctorCheck[]> {
  const name = "other_accounts";
  const foreign = await store.circuits.foreign(new Set(listAccounts(publishers).map(({ id }) => id)));
  if (foreign.length === 0) {
    return [{ name, status: "ok", detail: "no process has trouble with another URL or key" }];
  }
  return foreign.map(({ name: provider, reason, by }) => ({
    name,
    status: "warn",
    detail: `${by} has another URL or key for the provider of ${provider} than this gateway, and it is ${
      reason === "auth" ? "refused" : "not usable"
    }: start it again with the present settings`,
  }));
}

/** What is queued, and the dead letters. */
export async function checkLedger(store: Pick<Store, "snapshot">): Promise<DoctorCheck[]> {
  const snapshot = await store.snapshot();
  const [queued, dead] = [countOf(snapshot, "queued"), countOf(snapshot, "dead")];
  const age = (ageMs: number) => `the oldest for ${describeAge(ageMs)}`;
  return [
    {
      name: "queued",
      status: "ok",
      detail: queued === 0 ? "none" : `${queued}, ${age(snapshot.oldestQueuedAgeMs)}`,
    },
    dead === 0
      ? { name: "dead_letters", status: "ok", detail: "none" }
      : { name: "dead_letters", status: "warn", detail: `${dead}, ${age(snapshot.oldestDeadAgeMs)}` },
  ];
}

/** An age in its most readable unit. */
function describeAge(ageMs: number): string {
  const unit = AGE_UNITS.find(({ unitMs }) => ageMs >= 2 * unitMs) ?? SECOND;
  return `${Math.round(ageMs / unit.unitMs)} ${unit.name}`;
}

const SECOND = { name: "s", unitMs: 1000 } as const;
const AGE_UNITS = [
  { name: "days", unitMs: 86_400_000 },
  { name: "h", unitMs: 3_600_000 },
  { name: "min", unitMs: 60_000 },
] as const;

function checkWorkers(processes: readonly RelayProcess[]): DoctorCheck {
  const count = processes.filter(({ role }) => role === "worker").length;
  return count === 0
    ? { name: "workers", status: "fail", detail: "none runs: nothing is delivered" }
    : { name: "workers", status: "ok", detail: `${count} seen within a minute` };
}

function checkVersions(processes: readonly RelayProcess[]): DoctorCheck {
  const versions = [...new Set(processes.map(({ version }) => version))].sort();
  return versions.length > 1
    ? { name: "versions", status: "warn", detail: `${versions.join(", ")} run side by side` }
    : { name: "versions", status: "ok", detail: versions.join() };
}

function checkClocks(processes: readonly RelayProcess[]): DoctorCheck {
  const wrong = processes.filter(({ clockSkewMs }) => Math.abs(clockSkewMs ?? 0) > CLOCK_SKEW_WARNED_MS);
  const list = wrong.map(({ role, host, pid, clockSkewMs }) => `${role} ${host}/${pid} by ${clockSkewMs} ms`);
  return wrong.length > 0
    ? { name: "clocks", status: "warn", detail: `differ from Redis': ${list.join(", ")}` }
    : { name: "clocks", status: "ok", detail: `within ${CLOCK_SKEW_WARNED_MS} ms of Redis'` };
}

function countOf({ states }: LedgerSnapshot, state: string): number {
  return states.reduce((sum, { label, value }) => (label === state ? sum + value : sum), 0);
}
