/**
 * What every process of ours shares: settings, logs, metrics, traces, HTTP, Redis connections, start and stop. It knows
 * nothing about ads. `main.ts` is a separate entry point.
 */
export { OVERDUE, startDeadline, withDeadline } from "./deadline.ts";
export { sendJson } from "./express/hand-written-io.ts";
export {
  createApp,
  type FinishedRequest,
  HttpServer,
  type ListenOptions,
  startHttpServer,
} from "./http-server.ts";
export {
  answerErrors,
  type BodyResult,
  type JsonObject,
  makeReadBody,
  methodNotAllowed,
  notFound,
  parseJsonObject,
  type ReadBody,
  refusedMediaType,
  sendProblem,
} from "./json-http.ts";
export {
  CannotStartError,
  type Heartbeat,
  Lifecycle,
  Periodic,
  type StopStep,
  startHeartbeat,
} from "./lifecycle.ts";
export { createLogger, LOG_LEVELS, type LogLevel } from "./logger.ts";
export { createHistogramWithExemplars, createRegistry, exemplarOf } from "./metrics.ts";
export { createOpsApp, type OpsOptions, type ReadinessCheck } from "./ops-app.ts";
export { connectRedis, type RedisRole } from "./redis.ts";
export {
  DurabilityGuard,
  guardRedis,
  loadRedisInfo,
  loadSyncPolicy,
  type RedisInfo,
  reportDurability,
} from "./redis-durability.ts";
export {
  addToRequestLog,
  headerOf,
  type RequestContext,
  type RequestLogFields,
  requestContextOf,
  requestIdOf,
  requestSpanOf,
} from "./request-context.ts";
export { ADRELAY_VERSION, describeProcess, type RunnableService } from "./service.ts";
export {
  COMMON_SETTINGS,
  type ConfigResult,
  durationListType,
  durationType,
  type Environment,
  integerType,
  listType,
  loadConfig,
  optionalSetting,
  PROVIDER_SETTINGS,
  portType,
  renderEnvExample,
  setting,
  textType,
} from "./settings.ts";
export {
  NO_TRACING,
  openTracing,
  type Span,
  type SpanAttributes,
  type SpanOptions,
  type Tracing,
} from "./tracing.ts";
