/** Pure rules: no I/O, clock or randomness. */
export {
  CIRCUIT_EVENTS,
  CIRCUIT_PHASES,
  CIRCUIT_REASONS,
  type CircuitEvent,
  type CircuitPhase,
  type CircuitReason,
  decideCircuit,
} from "./circuit-breaker.ts";
export {
  type AttemptCode,
  type CallFailure,
  classifyDelivery,
  DEAD_REASON_TEXTS,
  DEAD_REASONS,
  type DeadReason,
  type DeliveryOutcome,
  HOLD_MAX_MS,
  judgeProvider,
  type ProviderHealth,
  type ProviderReply,
  parseRetryAfterMs,
  publicErrorOf,
  RETRY_AFTER_MAX_MS,
} from "./delivery.ts";
export {
  decideIntake,
  decideTransition,
  ENTRY_EVENTS,
  ENTRY_STATES,
  type EntryEvent,
  type EntryState,
  type IntakeDecision,
  type IntakeQuestion,
  isTerminal,
  type KnownEntry,
  type Transition,
} from "./entry-states.ts";
export {
  classifyInjection,
  FALLBACK_REASONS,
  type FallbackReason,
  type InjectionVerdict,
} from "./injection.ts";
export { JITTER_SHARE, planRetry, type RetryPlan, type RetryQuestion, SLOW_RETRY_MS } from "./plan-retry.ts";
export { type RedisErrorKind, redisErrorKind } from "./redis-error-kind.ts";
