/** Redis and Prometheus for tests, for benchmarks and for `npm start`: found or fetched, without root, and run. */
export { describeTried, findRedisServer } from "./find-redis.ts";
export { containerMemorySettings, imageMemorySettings } from "./image-memory.ts";
export type { TestRedis } from "./local-test-redis.ts";
export { PINNED_SERVERS, type PinnedWay } from "./pinned-servers.ts";
export { freeLanePort, freePort } from "./ports.ts";
export { listProcesses, selectDescendants, stopDescendants } from "./process-tree.ts";
export {
  describeMissing,
  findPrometheus,
  findTestPrometheus,
  providePrometheus,
  type RunningPrometheus,
  startPrometheus,
} from "./prometheus.ts";
export {
  PrometheusClient,
  type Sample,
} from "./prometheus-client.ts";
export { RedisStartError } from "./redis-data-folder.ts";
export { describeServer, REDIS_IMAGE, type RedisServer } from "./redis-server.ts";
export { type StartRedisOptions, startRedis } from "./start-redis.ts";
export {
  chooseTestRedis,
  isProvided,
  pinnedTestEnv,
  provideRedis,
  startTestRedis,
  type TestRedisKind,
} from "./test-redis.ts";
