/** Real parts for tests: a Redis, processes, a scripted provider. Imported by tests alone. */
export { type AdServerProcess, startAdServer } from "./ad-server-process.ts";
export {
  type CommandOptions,
  type EndedCommand,
  type RunningCommand,
  startAdrelay,
} from "./adrelay-command.ts";
export {
  type AppName,
  type AppOptions,
  type AppProcess,
  AppStartError,
  type LogLine,
  startApp,
} from "./app-process.ts";
export { chooseTestRedis, type TestRedisKind } from "./choose-test-redis.ts";
export { COMPILE_CACHE } from "./compile-cache.ts";
export { dumpRedis } from "./dump-redis.ts";
export { eventually, pause } from "./eventually.ts";
export { freeLanePort } from "./lane-port.ts";
export { fetchMetrics, parseMetrics, type Samples, sumOf } from "./metrics-text.ts";
export { type CollectedSpan, type OtlpCollector, startOtlpCollector } from "./otlp-collector.ts";
export {
  type Answer,
  type RelayCaller,
  relayCaller,
  type SendOptions,
  TEST_INJECTION,
  unknownId,
} from "./relay-caller.ts";
export {
  type RelayStack,
  type StackOptions,
  startRelayStack,
  TEST_ADMIN_TOKEN,
  TEST_API_KEY,
  TEST_PROVIDER_KEY,
} from "./relay-stack.ts";
export {
  acknowledged,
  type Behaviour,
  filled,
  type Script,
  type ScriptedProvider,
  type SeenPost,
  startScriptedProvider,
  unfilled,
} from "./scripted-provider.ts";
export { type SocketProxy, startSocketProxy } from "./socket-proxy.ts";
export { findTestPrometheus, PrometheusMissingError, type TestPrometheus } from "./test-prometheus.ts";
export { startTestRedis, type TestRedis } from "./test-redis.ts";
