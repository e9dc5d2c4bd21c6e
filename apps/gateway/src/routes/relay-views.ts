import type { DataLossView, ProcessView } from "@adrelay/contract";
import type { DataLoss, RelayProcess } from "@adrelay/ledger";

/** A process as the admin API shows it. */
export function viewOfProcess(one: RelayProcess): ProcessView {
  return {
    role: one.role,
    host: one.host,
    pid: one.pid,
    version: one.version,
    started_at: new Date(one.startedAtMs).toISOString(),
    seen_at: new Date(one.seenAtMs).toISOString(),
    clock_skew_ms: one.clockSkewMs,
  };
}

/** The latest loss of data as the admin API shows it; null for none. */
export function viewOfLoss(loss: DataLoss | undefined): DataLossView | null {
  return loss === undefined ? null : { at: new Date(loss.atMs).toISOString(), detail: loss.detail };
}
