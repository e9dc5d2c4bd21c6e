/**
 * Finds or fetches a Redis server and runs one, without root: for `npm start` and for tests.
 * Node's own modules alone: it works before anything else does.
 */
export { type Installation, installDebianPackage } from "./find/debian-package.ts";
export { type FindOptions, type FoundServer, findRedisServer } from "./find/find-redis-server.ts";
export { describeServer, parseRedisServer, type RedisServer } from "./redis-server.ts";
export { type CommandResult, runCommand } from "./run-command.ts";
export { guardAgainstOrphaning } from "./start/guardian.ts";
export { freePort } from "./start/ports.ts";
export { RedisStartError, type RedisStartErrorCode } from "./start/redis-start-error.ts";
export type { RedisExit, RunningRedis } from "./start/running-redis.ts";
export { type StartOptions, startRedis } from "./start/start-redis.ts";
