/** Redis and Prometheus for tests, for benchmarks and for `npm start`: found or fetched, without root, and run. */
export { describeTried, type FoundServer, findRedisServer } from "./find-redis.ts";
export { freeLanePort, freePort } from "./ports.ts";
export { listProcesses, selectDescendants, stopDescendants } from "./process-tree.ts";
export {
  describeMissing,
  type FoundPrometheus,
  findPrometheus,
  findTestPrometheus,
  PrometheusMissingError,
  type PrometheusPrograms,
  PrometheusStartError,
  providePrometheus,
  type RunningPrometheus,
  startPrometheus,
  type TestPrometheus,
} from "./prometheus.ts";
export {
  type PrometheusAnswer,
  PrometheusClient,
  type Rule,
  type Sample,
  type Target,
} from "./prometheus-client.ts";
export { RedisStartError, type RedisStartErrorCode } from "./redis-data-folder.ts";
export type { RedisExit, RunningRedis } from "./redis-process.ts";
export { describeServer, type FindRedisOptions, type RedisServer } from "./redis-server.ts";
export { type StartRedisOptions, startRedis } from "./start-redis.ts";
export {
  chooseTestRedis,
  provideRedis,
  startTestRedis,
  type TestRedis,
  type TestRedisKind,
} from "./test-redis.ts";
