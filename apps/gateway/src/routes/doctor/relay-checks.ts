import type { DoctorCheck } from "@adrelay/contract";
import type { Ledger, LedgerSnapshot, Pulse, RelayProcess } from "@adrelay/ledger";

const CLOCK_SKEW_WARNED_MS = 1000;

/** Whether there are workers, all processes are of one version, and their clocks go right. */
export async function checkProcesses(pulse: Pick<Pulse, "loadProcesses">): Promise<DoctorCheck[]> {
  const processes = await pulse.loadProcesses();
  return [checkWorkers(processes), checkVersions(processes), checkClocks(processes)];
}

/** Whether Redis has lost data in the last 24 hours. */
export async function checkDataLoss(pulse: Pick<Pulse, "loadLoss">): Promise<DoctorCheck[]> {
  const loss = await pulse.loadLoss();
  const name = "data_loss";
  return [
    loss === undefined
      ? { name, status: "ok", detail: "none noticed in the last 24 hours" }
      : { name, status: "warn", detail: `at ${new Date(loss.atMs).toISOString()}: ${loss.detail}` },
  ];
}

/** What waits, and the dead letters. */
export async function checkBooks(ledger: Pick<Ledger, "snapshot">): Promise<DoctorCheck[]> {
  const snapshot = await ledger.snapshot();
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

/** In the unit that a person would choose. */
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
    ? { name: "workers", status: "fail", detail: "none seen within a minute: nothing is delivered" }
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
