/** Pure rules: no I/O, clock or randomness. */
export {
  CIRCUIT_EVENTS,
  CIRCUIT_PHASES,
  CIRCUIT_REASONS,
  type CircuitEvent,
  type CircuitPhase,
  type CircuitReason,
  decideCircuit,
} from "./circuit/circuit-machine.ts";
export { HOLD_MAX_MS, judgeProvider, type ProviderHealth } from "./circuit/judge-outcome.ts";
export {
  type AttemptCode,
  classifyDelivery,
  DEAD_REASON_TEXTS,
  DEAD_REASONS,
  type DeadReason,
  type DeliveryOutcome,
} from "./delivery/classify-delivery.ts";
export {
  JITTER_SHARE,
  planRetry,
  type RetryPlan,
  type RetryQuestion,
  SLOW_RETRY_MS,
} from "./delivery/plan-retry.ts";
export { type CallFailure, outcomeLabelOf, type ProviderReply } from "./delivery/provider-reply.ts";
export { publicErrorOf } from "./delivery/public-error.ts";
export { parseRetryAfterMs, RETRY_AFTER_MAX_MS } from "./delivery/retry-after.ts";
export {
  decideTransition,
  ENTRY_EVENTS,
  ENTRY_STATES,
  type EntryEvent,
  type EntryState,
  isTerminal,
  type Transition,
} from "./entry/state-machine.ts";
export {
  classifyInjection,
  FALLBACK_REASONS,
  type FallbackReason,
  type InjectionVerdict,
} from "./injection/classify-injection.ts";
export {
  decideIntake,
  type IntakeDecision,
  type IntakeQuestion,
  type KnownEntry,
} from "./intake/decide-intake.ts";
export { type RedisErrorKind, redisErrorKind } from "./redis-error-kind.ts";
