/**
 * What every process of ours shares: settings, logs, metrics, traces, HTTP, Redis connections, start and stop. It knows
 * nothing about ads. `main.ts` is a separate entry point.
 */
export { API_DOCUMENT_PATH, serveApiDocument } from "./api-document.ts";
export { atMostEvery } from "./at-most-every.ts";
export { OVERDUE, startDeadline, withDeadline } from "./deadline.ts";
export { daysBetween, durationBetween, durationType } from "./durations.ts";
export { readEnvFile } from "./env-file.ts";
export {
  answerErrors,
  type JsonBody,
  type JsonObject,
  methodNotAllowed,
  notFound,
  parseJsonObject,
  readJson,
  refusedMediaType,
  sendJson,
  sendProblem,
} from "./express/json-http.ts";
export { guardRedis, reportDurability, reportMemory } from "./guard-redis.ts";
export {
  addToRequestLog,
  createApp,
  type FinishedRequest,
  headerOf,
  type RequestLogFields,
  requestContextOf,
  requestIdOf,
  requestSpanOf,
} from "./http-app.ts";
export { HttpServer, startHttpServer } from "./http-server.ts";
export {
  Lifecycle,
  Periodic,
  PeriodicHeartbeat,
} from "./lifecycle.ts";
export { describeFault, faultFields, listedOf, listFields } from "./log-lists.ts";
export { createLogger } from "./logger.ts";
export { LoginGuard, RECENT_LOGIN_MINUTES } from "./login-guard.ts";
export { createHistogramWithExemplars, createRegistry } from "./metrics.ts";
export { onAbort } from "./on-abort.ts";
export { openTracing } from "./open-tracing.ts";
export { addressOf, logIn } from "./ops-access.ts";
export { createOpsApp, OPS_LISTENER_LIMITS } from "./ops-app.ts";
export { Pieces } from "./pieces.ts";
export { ProviderDurations } from "./provider-durations.ts";
export { makeReadBody, type ReadBody, readBytesMax } from "./read-body.ts";
export { connectRedis, explainAway, type RedisRole, waitForRedis } from "./redis.ts";
export { DurabilityGuard, describeForbidden, type MissingRights } from "./redis-durability.ts";
export { loadRedisInfo, loadSyncPolicy, type RedisInfo } from "./redis-info.ts";
export { redisTargetFaults, redisTargetOf } from "./redis-target.ts";
export { ADRELAY_VERSION, describeProcess, type RunnableService } from "./service.ts";
export { misspeltNames } from "./setting-names.ts";
export {
  COMMON_SETTINGS,
  type ConfigResult,
  durationListType,
  type Environment,
  integerType,
  listType,
  loadConfig,
  OPS_SETTINGS,
  optionalSetting,
  PROVIDER_SETTINGS,
  PUBLIC_LISTENER_SETTINGS,
  portType,
  renderEnvExample,
  setting,
  textType,
  tokenType,
  trimmed,
} from "./settings.ts";
export { sizeBetween } from "./sizes.ts";
export {
  exemplarOf,
  NO_TRACING,
  type Span,
  type Tracing,
} from "./tracing.ts";
