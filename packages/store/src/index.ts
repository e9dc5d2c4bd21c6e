/** All that the relay keeps in Redis: the ledger of ad responses and the queue of their acknowledgments. */
export { ATTEMPT_MAX_MS } from "./bullmq/locks.ts";
export type { CircuitReport } from "./circuit/circuit-reports.ts";
export type {
  CircuitMember,
  CircuitRoom,
  CircuitState,
  ForeignCircuit,
} from "./circuit/circuits.ts";
export { type Actor, writeActor } from "./dead-letters/actor.ts";
export type { DiscardOrder, ReplayOrder } from "./dead-letters/bulk-kinds.ts";
export type { BulkDiscard, BulkReplay } from "./dead-letters/bulk-record.ts";
export { AUDIT_PLACE, type AuditEntry } from "./dead-letters/dead-letters.ts";
export type { DeadFilter, ListPlace } from "./dead-letters/listing.ts";
export {
  type AttemptResult,
  type BegunAttempt,
  type DueAttempt,
  PARKED_MAX_MS,
  type SettledAttempt,
} from "./delivery/job-completer.ts";
export type { JobHead } from "./delivery/payload.ts";
export type { ChannelNotice, Settlement } from "./delivery/settlement.ts";
export { acknowledgedOf, type LedgerEntry, lastCodeOf, openTurnOf } from "./entry.ts";
export { ERASURE_PLACE } from "./erasure/erasures.ts";
export { createDataLossCounter, type DataLoss, type Heartbeat } from "./heartbeat/heartbeat.ts";
export type { RelayProcess } from "./heartbeat/process-record.ts";
export type { AcceptResult } from "./intake/accept.ts";
export { ackIdOf, textHashOf } from "./intake/fingerprints.ts";
export type { InjectionRecord, RecordedInjection } from "./intake/injections.ts";
export type { RoomView } from "./intake/room.ts";
export {
  type IntakeRules,
  NO_LIMITS,
  type OverQuota,
  STORED_QUOTAS,
  type StoredLimits,
  type StoredQuota,
} from "./intake/rules.ts";
export { TURN_TEXT_MAX_BYTES } from "./journal/text.ts";
export type { FindAd } from "./journal/turn-settler.ts";
export {
  type EndedStep,
  type FinalStep,
  type HeldKind,
  type HeldTurn,
  type JoinedTurn,
  type NewTurn,
  type OpenedTurn,
  type StepRef,
  type StepWrite,
  TURN_LEASE_MS,
  type Turns,
  type WriteAnswer,
} from "./journal/types.ts";
export type { RewriteRecord } from "./maintenance/rewrites.ts";
export { LedgerMetrics } from "./metrics/ledger-metrics.ts";
export type { LabelledCount, LedgerSnapshot } from "./metrics/snapshot.ts";
export { openStore, type Store, type StoreOptions } from "./open-store.ts";
export { type AdoptionPlace, gonePublishers } from "./publishers/adoption.ts";
export { loadMissingRights } from "./redis/rights.ts";
