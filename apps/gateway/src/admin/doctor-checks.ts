/** The doctor's checks of processes and the ledger. Each says what is wrong and what to do. */
import type { DoctorCheck } from "@adrelay/contract";
import type { PublisherDirectory } from "@adrelay/provider";
import {
  gonePublishers,
  type Heartbeat,
  type IntakeRules,
  type LedgerSnapshot,
  lastCodeOf,
  type RelayProcess,
  type Store,
} from "@adrelay/store";
import { checkQuotas } from "./quotas.ts";

const CLOCK_SKEW_WARNED_MS = 1000;

/** Whether there are workers, whether all processes are of one version, and whether their clocks are right. */
export async function checkProcesses(
  heartbeat: Pick<Heartbeat, "loadProcesses" | "writes">,
): Promise<DoctorCheck[]> {
  if (heartbeat.writes.kind === "refused") {
    const detail = "nobody knows which run: Redis takes no heartbeats, see redis and redis_writes";
    return [{ name: "workers", status: "warn", detail }];
  }
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
  readonly publishers: PublisherDirectory;
}): Promise<DoctorCheck[]> {
  const name = "other_accounts";
  const foreign = await store.circuits.foreign(new Set(publishers.accounts.map(({ id }) => id)));
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

/** What is queued, the dead letters, quotas of Redis' memory, and publishers that are gone. */
export async function checkLedger({
  store,
  publishers,
  rulesOf,
}: {
  readonly store: Pick<Store, "snapshot" | "acknowledgments">;
  readonly publishers: PublisherDirectory;
  readonly rulesOf: (publisher: string) => Pick<IntakeRules, "limits">;
}): Promise<DoctorCheck[]> {
  const [snapshot, forbidden] = await Promise.all([store.snapshot(), countForbidden(store)]);
  const [queued, dead] = [countOf(snapshot, "queued"), countOf(snapshot, "dead")];
  const age = (ageMs: number) => `the oldest for ${describeAge(ageMs)}`;
  return [
    queued === 0
      ? { name: "queued", status: "ok", detail: "none" }
      : describeQueued(`${queued}, ${age(snapshot.oldestQueuedAgeMs)}`, forbidden),
    dead === 0
      ? { name: "dead_letters", status: "ok", detail: "none" }
      : { name: "dead_letters", status: "warn", detail: `${dead}, ${age(snapshot.oldestDeadAgeMs)}` },
    checkQuotas(snapshot, rulesOf),
    ...checkPublishers(snapshot, publishers.current),
  ];
}

/** This many queued ones with a 403 are no chance. */
const FORBIDDEN_WARNED = 3;
const QUEUED_READ_MAX = 100;
/** Under traffic the newest ones have no attempt yet. So some that have waited this long are read, too. */
const QUEUED_LONG_MS = 60_000;

/** How many of the queued ones that were read got a 403 of the service at their last attempt. */
async function countForbidden({ acknowledgments }: Pick<Store, "acknowledgments">): Promise<number> {
  const none = { publisher: undefined, reason: undefined, code: undefined, sinceMs: undefined };
  const question = { ...none, state: "queued", limit: QUEUED_READ_MAX, after: undefined } as const;
  const pages = await Promise.all(
    [undefined, Date.now() - QUEUED_LONG_MS].map((untilMs) => acknowledgments.page({ ...question, untilMs })),
  );
  const forbidden = pages
    .flatMap(({ entries }) => entries)
    .filter((entry) => lastCodeOf(entry) === "http_403");
  return new Set(forbidden.map(({ id }) => id)).size;
}

function describeQueued(detail: string, forbidden: number): DoctorCheck {
  const name = "queued";
  return forbidden < FORBIDDEN_WARNED
    ? { name, status: "ok", detail }
    : {
        name,
        status: "warn",
        detail: `${detail}; the provider's last answer to ${forbidden} of them was 403: are their ads of another account than the present key? See docs/secrets.md`,
      };
}

function checkPublishers(snapshot: LedgerSnapshot, publishers: PublisherDirectory["current"]): DoctorCheck[] {
  const name = "publishers";
  const gone = gonePublishers(
    snapshot,
    publishers.map(({ id }) => id),
  );
  if (gone.length === 0) {
    return [{ name, status: "ok", detail: "all that have ad responses are in the settings" }];
  }
  return gone.map(({ publisher, counts: { queued, dead, awaiting } }) => ({
    name,
    status: "warn",
    detail: `${publisher} is gone from the settings, with ${queued} queued, ${dead} dead and ${awaiting} awaiting: put it back, or give them to another publisher with \`publishers adopt ${publisher} OTHER\``,
  }));
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

/** A worker that stands still for a moment isn't warned of. */
const WORKER_SILENCE_WARNED_MS = 10_000;

function checkWorkers(processes: readonly RelayProcess[]): DoctorCheck {
  const name = "workers";
  const silences = processes.filter(({ role }) => role === "worker").map(({ silentMs }) => silentMs);
  if (silences.length === 0) {
    return { name, status: "fail", detail: "none runs: nothing is delivered" };
  }
  const silentMs = Math.min(...silences);
  return silentMs > WORKER_SILENCE_WARNED_MS
    ? {
        name,
        status: "warn",
        detail: `none has been seen for ${describeAge(silentMs)}: while none runs, nothing is delivered`,
      }
    : { name, status: "ok", detail: `${silences.length} seen within a minute` };
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
