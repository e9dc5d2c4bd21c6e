/** The state of each ad response, and the only truth about counts. */
export { ATTEMPTS_KEPT, type AttemptRecord, type LedgerEntry } from "./entry.ts";
export {
  AUTH_PROBE_FACTOR,
  type GateAccount,
  type GateEvent,
  type GateMember,
  type GateState,
  type GatesOptions,
  type GateTick,
  type Parking,
  ProviderGates,
} from "./gate/gates.ts";
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
  type AcceptCode,
  type BookedCode,
  type ClaimCode,
  type LeaveDeadCode,
  LedgerReplyError,
} from "./reply-codes.ts";
export type { LabelledCount, LedgerSnapshot } from "./snapshot.ts";
