/** The state of each ad response, and the only truth about counts. */
export type { BeginResult, Standing } from "./attempts.ts";
export { AUDIT_PLACE, Audit, type AuditEntry, type AuditPage } from "./audit.ts";
export { DeadLetters, type LeaveDeadResult } from "./dead-letters.ts";
export { ATTEMPTS_KEPT, type AttemptRecord, type LedgerEntry } from "./entry.ts";
export {
  Finisher,
  type FinisherOptions,
  type FinishRequest,
  type FinishResult,
  type LastWord,
  type QueueCompletion,
  type StandingLook,
} from "./finisher.ts";
export { type GateAccount, type GateState, loadGateState } from "./gate/gate-state.ts";
export {
  AUTH_PROBE_FACTOR,
  type GateEvent,
  type GateMember,
  type GatesOptions,
  type GateTick,
  type Parking,
  ProviderGates,
} from "./gate/gates.ts";
export { type InjectionRecord, RECORDED_OUTCOMES } from "./injections.ts";
export {
  type BeginRequest,
  Ledger,
  type LedgerOptions,
  type QueuedEntry,
  type Settlement,
} from "./ledger.ts";
export { LEDGER_COUNTERS } from "./ledger-counters.ts";
export {
  type DeadFilter,
  Listing,
  type ListPage,
  type ListPlace,
  type ListQuestion,
} from "./listing.ts";
export { collectWithLedger, type LedgerSources, type QueueDepths } from "./metrics.ts";
export type { PayloadWork } from "./payload-work.ts";
export {
  type DataLoss,
  type HeldCounts,
  type ProcessIdentity,
  Pulse,
  type PulseOptions,
  type RelayProcess,
} from "./pulse.ts";
export { type BulkReplay, type ReplayBatch, type ReplayOrder, Replays } from "./replays.ts";
export {
  type AcceptCode,
  type BookedCode,
  type CancelCode,
  type ClaimCode,
  isRefusedForNow,
  type LeaveDeadCode,
  LedgerRefusalError,
  LedgerReplyError,
} from "./reply-codes.ts";
export type { LabelledCount, LedgerSnapshot } from "./snapshot.ts";
export {
  type QueueInsertion,
  type TakeRequest,
  type TakeResult,
  Taker,
  type TakerOptions,
} from "./taker.ts";
