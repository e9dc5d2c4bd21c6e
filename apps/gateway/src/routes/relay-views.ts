import type { DataLossView, ProcessView, ProviderView } from "@adrelay/contract";
import { type DataLoss, type GateState, loadGateState, type Pulse, type RelayProcess } from "@adrelay/ledger";
import { groupByProvider, type ProviderGroup, type Publisher } from "@adrelay/provider";
import type { Redis } from "ioredis";
import { isoTime } from "./iso-time.ts";

export interface RelayViewDeps {
  readonly redis: Redis;
  readonly pulse: Pulse;
  readonly publishers: readonly Publisher[];
}

/** What the admin API shows of the relay's own parts. */
export function makeRelayViews({ redis, pulse, publishers }: RelayViewDeps) {
  const groups = groupByProvider(publishers);
  return {
    providers: () =>
      Promise.all(groups.map(async (group) => viewOfProvider(group, await loadGateState(redis, group)))),
    processes: async () => (await pulse.loadProcesses()).map(viewOfProcess),
    dataLoss: async () => viewOfLoss(await pulse.loadLoss()),
  };
}

function viewOfProvider({ name, publishers }: ProviderGroup, state: GateState): ProviderView {
  const { phase, reason, sinceMs, nextProbeAtMs, waiting } = state;
  return {
    provider: name,
    publishers: [...publishers],
    circuit: phase,
    reason: phase === "closed" ? null : (reason ?? null),
    since: sinceMs === 0 ? null : isoTime(sinceMs),
    next_probe_at: phase === "open" ? isoTime(nextProbeAtMs) : null,
    parked: waiting,
  };
}

function viewOfProcess(one: RelayProcess): ProcessView {
  return {
    role: one.role,
    host: one.host,
    pid: one.pid,
    version: one.version,
    started_at: isoTime(one.startedAtMs),
    seen_at: isoTime(one.seenAtMs),
    clock_skew_ms: one.clockSkewMs,
  };
}

/** The latest loss of data; null for none. */
function viewOfLoss(loss: DataLoss | undefined): DataLossView | null {
  return loss === undefined ? null : { at: isoTime(loss.atMs), detail: loss.detail };
}
