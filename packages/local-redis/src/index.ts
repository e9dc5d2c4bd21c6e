/** Finds or fetches a Redis server and runs one, without root: for `npm start` and for tests. */
export {
  DOCKER_IMAGE,
  describeServer,
  type FindOptions,
  type FoundServer,
  findRedisServer,
  type RedisServer,
} from "./find-redis-server.ts";
export { type CommandResult, runCommand } from "./run-command.ts";
export {
  freePort,
  RedisStartError,
  type RunningRedis,
  type StartOptions,
  startRedis,
} from "./start-redis.ts";
