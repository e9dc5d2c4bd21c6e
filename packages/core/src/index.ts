/** Pure rules: no I/O, clock or randomness. */

export { type CallerKey, digestSchema, KEY_STATES, keyOfDigest, stateOfKey } from "./caller-keys.ts";
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
  type AgeReason,
  type CallFailure,
  classifyDelivery,
  DEAD_REASON_TEXTS,
  DEAD_REASONS,
  type DeadReason,
  type DeliveryOutcome,
  isServiceForm,
  type ProviderReply,
  publicErrorOf,
} from "./delivery.ts";
export {
  decideIntake,
  decideTransition,
  ENTRY_EVENTS,
  ENTRY_STATES,
  type EntryEvent,
  type EntryState,
  type IntakeDecision,
} from "./entry-states.ts";
export { FairShare, type ShareAccount } from "./fair-share.ts";
export {
  FINDINGS,
  type Finding,
  isDisagreement,
  parseFinding,
  type TurnAd,
  UNKNOWN_FINDING,
  writeFinding,
} from "./findings.ts";
export {
  classifyInjection,
  FALLBACK_REASONS,
  type FallbackReason,
  type InjectionClass,
} from "./injection.ts";
export { normalizable } from "./normalizable.ts";
export { OTHER_LABEL, OwnSeries } from "./own-series.ts";
export { planRetry } from "./plan-retry.ts";
export { HOLD_MAX_MS, judgeProvider, type ProviderHealth } from "./provider-health.ts";
export {
  type ModelRules,
  type ProviderEntry,
  type PublisherEntry,
  parsePublishersFile,
} from "./publishers-file.ts";
export {
  bytesLimitSchema,
  countLimitSchema,
  limitInBytes,
  type OwnQuotas,
  type Quotas,
  quotasOf,
  sizeLimitSchema,
  UNKNOWN_ACK,
  type UnknownAck,
} from "./quotas.ts";
export { explainRedisError, isForbiddenByRedis, redisErrorKind, redisErrorWord } from "./redis-error-kind.ts";
export { TokenBucket } from "./token-bucket.ts";
export {
  DIALECTS,
  type DialectName,
  decideTurn,
  type EmptyAnswers,
  type StepEnd,
  TURN_EVENTS,
  TURN_OUTCOMES,
  type TurnEvent,
  type TurnOutcome,
  type TurnTransition,
  type TurnView,
} from "./turns.ts";
export { parseYamlText } from "./yaml-text.ts";
