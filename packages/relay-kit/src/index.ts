/** What the processes of the relay share: gateway, worker and proxy. */
export { Admission, type OperationName } from "./admission/admission.ts";
export { type Holding, RETRY_AFTER_SECONDS, type Refusal } from "./admission/holding.ts";
export { type CountOverload, createOverloadCounter, reportInFlight } from "./admission/in-flight-metrics.ts";
export { createQuotaMetrics, type QuotaMetrics, type QuotaRefusals } from "./admission/quota-metrics.ts";
export { nameOfRefusal, type QuotaName } from "./admission/quota-names.ts";
export { defaultQuotas } from "./admission/quota-settings.ts";
export { hmacOf } from "./hmac.ts";
export { makeFallback } from "./injection/fallback.ts";
export { createInjectionMetrics, type InjectionMetrics } from "./injection/injection-metrics.ts";
export {
  type InjectionAnswer,
  makeStartInjection,
  type StartInjection,
} from "./injection/start-injection.ts";
export { type Caller, PendingWork } from "./injection/waits.ts";
export { OnceASecond } from "./once-a-second.ts";
export { startAnswerJudge } from "./process/answer-judge.ts";
export { FILES_LOOK_INTERVAL_MS, FileWatch, reportFiles } from "./process/file-watch.ts";
export { startHeartbeat } from "./process/heartbeat.ts";
export {
  type IntakeParts,
  startIntake,
  startOpsListener,
  startPublicListener,
} from "./process/intake-process.ts";
export { openRelayBase, type RelayBase, watchPublishers } from "./process/relay-base.ts";
export {
  type IntakeAdapters,
  openIntakeStore,
  openRelayStore,
  type RelayAdapters,
} from "./process/relay-store.ts";
export { type Authenticate, makeAuthenticate } from "./publishers/authenticate.ts";
export {
  CALLER_SETTINGS,
  INTAKE_SETTINGS,
  KEY_HEADER_SETTINGS,
  openCallers,
  SESSION_SETTINGS,
} from "./publishers/caller-settings.ts";
/** The settings of models' servers, and their certificates. */
export { loadModelTls, MODEL_SETTINGS } from "./publishers/model-settings.ts";
export { PublisherSeries } from "./publishers/publisher-series.ts";
export { reportPublishers } from "./publishers/publishers-metrics.ts";
export type { PublishersWatch } from "./publishers/publishers-watch.ts";
export { SessionHashes } from "./session-hashes.ts";
