/** The state of each ad response, and the only truth about counts. */
export { ATTEMPTS_KEPT, type AttemptRecord, type LedgerEntry } from "./entry.ts";
export {
  type AcceptRequest,
  type AcceptResult,
  type InjectionRecord,
  Ledger,
  type LedgerOptions,
  type PayloadWork,
  type Settlement,
} from "./ledger.ts";
export { collectWithLedger, LEDGER_COUNTERS, type LedgerSources, type QueueDepths } from "./metrics.ts";
export {
  type DataLoss,
  type HeldCounts,
  type ProcessIdentity,
  Pulse,
  type PulseOptions,
  type RelayProcess,
} from "./pulse.ts";
export { type AcceptCode, type BookedCode, type LeaveDeadCode, LedgerReplyError } from "./reply-codes.ts";
export type { LabelledCount, LedgerSnapshot } from "./snapshot.ts";
