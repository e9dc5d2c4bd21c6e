/**
 * What every process of ours shares: settings, logs, metrics, traces, HTTP, Redis connections, start and stop. It knows
 * nothing about ads. `main.ts` is an entry point of its own.
 */
export { OVERDUE, startDeadline, withDeadline } from "./deadline.ts";
export { sendJson } from "./express/hand-written-io.ts";
export {
  createApp,
  type FinishedRequest,
  HttpServer,
  startHttpServer,
} from "./http-server.ts";
export {
  answerErrors,
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
  Lifecycle,
  Periodic,
  PeriodicHeartbeat,
} from "./lifecycle.ts";
export { createLogger } from "./logger.ts";
export { createHistogramWithExemplars, createRegistry, exemplarOf } from "./metrics.ts";
export { openTracing } from "./open-tracing.ts";
export { createOpsApp } from "./ops-app.ts";
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
  type Span,
  type Tracing,
} from "./tracing.ts";
