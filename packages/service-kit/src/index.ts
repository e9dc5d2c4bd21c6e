/** What every process shares; it knows nothing of ads. */

export { type EnvSection, renderEnvExample } from "./config/env-example.ts";
export { type ConfigResult, describeFaults, type Environment, loadConfig } from "./config/load-config.ts";
export {
  durationListType,
  durationType,
  integerType,
  listType,
  optionalSetting,
  parseDurationMs,
  portType,
  redisUrlType,
  type SettingNote,
  setting,
  textType,
} from "./config/settings.ts";
export { COMMON_SETTINGS, PROVIDER_SETTINGS } from "./config/shared-settings.ts";
export { DurabilityGuard } from "./durability-guard.ts";
export { reportDurability } from "./durability-metric.ts";
export { CallNotes } from "./http/call-notes.ts";
export { headerOf } from "./http/header-of.ts";
export { CALLER_GONE_STATUS, createApp, type FinishedRequest } from "./http/http-app.ts";
export { type HttpServer, ListenError, type ListenOptions, startHttpServer } from "./http/http-server.ts";
export {
  type BodyResult,
  type JsonObject,
  makeReadBody,
  parseJsonObject,
  type ReadBody,
  refusedMediaType,
} from "./http/json-body.ts";
export { createOpsApp, type OpsOptions, type ReadinessCheck } from "./http/ops-app.ts";
export { answerErrors, methodNotAllowed, notFound, sendProblem } from "./http/problems.ts";
export { requestIdOf } from "./http/request-id.ts";
export type { Notes } from "./http/request-record.ts";
export { requestSpanOf } from "./http/request-span.ts";
export { sendJson } from "./http/send-json.ts";
export { createLogger, LOG_LEVELS, type LogLevel } from "./logger.ts";
export { createHistogramWithExemplars, createRegistry, exemplarOf } from "./metrics.ts";
export { CannotStartError } from "./process/cannot-start-error.ts";
export { ADRELAY_VERSION, describeProcess } from "./process/describe-process.ts";
export { type Heart, keepBeating } from "./process/keep-beating.ts";
export { Lifecycle, type StopStep } from "./process/lifecycle.ts";
export { guardRedis, RedisNotDurableError } from "./process/open-redis.ts";
export { Periodic } from "./process/periodic.ts";
export { type RunnableService, runService } from "./process/run-service.ts";
export { type ComposeResult, EXIT_FAULTY_SETTINGS, startService } from "./process/start-service.ts";
export { OVERDUE, startDeadline, withDeadline } from "./process/with-deadline.ts";
export { connectRedis, type RedisRole } from "./redis.ts";
export {
  DURABILITY_MODES,
  type DurabilityMode,
  durabilityFaults,
  loadRedisStanding,
  loadSyncPolicy,
  type RedisStanding,
} from "./redis-durability.ts";
export { openTracing } from "./tracing/open-tracing.ts";
export {
  NO_TRACING,
  type Span,
  type SpanAttributes,
  type SpanOptions,
  type Tracing,
} from "./tracing/tracing.ts";
