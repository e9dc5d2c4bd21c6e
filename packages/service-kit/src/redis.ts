import type { Redis, RedisOptions } from "ioredis";
import type { Logger } from "pino";
import { type ConnectionOptions, RequestRedis } from "./ioredis/request-redis.ts";
import { WaitingRedis } from "./ioredis/waiting-redis.ts";

/** What a connection is for. This decides how it behaves while Redis is away. */
export type RedisRole =
  /** A caller waits for the answer: commands fail within a second, and work again within a second of Redis' return. */
  | "request"
  /** BullMQ's worker blocks on it: commands wait for Redis as long as necessary. */
  | "worker"
  /** Listens to channels. */
  | "subscriber";

/** A command of a `request` connection is given up after this time. Whether Redis has run it is then unknown. */
const REQUEST_COMMAND_TIMEOUT_MS = 700;
const RECONNECT_DELAY_MAX_MS = 500;
const CONNECT_TIMEOUT_MS = 2000;
/**
 * If an answer is due and nothing arrives for this long, the connection is replaced: the other end may be gone without
 * having closed it. A worker's connection blocks for up to ten seconds on purpose, so its limit is longer.
 */
const REQUEST_SILENCE_MAX_MS = 1500;
const BLOCKING_SILENCE_MAX_MS = 20_000;
/** A connection that only listens sends a PING this often, so that an answer is due. */
const PING_INTERVAL_MS = 5000;

const ROLE_OPTIONS = {
  request: {
    enableOfflineQueue: false,
    socketTimeout: REQUEST_SILENCE_MAX_MS,
  },
  // No command timeout here: BullMQ blocks on this connection on purpose.
  worker: { maxRetriesPerRequest: null, socketTimeout: BLOCKING_SILENCE_MAX_MS },
  subscriber: { maxRetriesPerRequest: null, socketTimeout: BLOCKING_SILENCE_MAX_MS },
} as const satisfies Record<RedisRole, RedisOptions>;

/**
 * Opens a connection. It reconnects forever and quickly: with ioredis' default back-off intake would stay closed for
 * seconds after Redis is back. The connection logs when Redis goes away and when it is back.
 */
export function connectRedis(url: string, role: RedisRole, log: Logger): Redis {
  const options: ConnectionOptions = {
    connectTimeout: CONNECT_TIMEOUT_MS,
    // While Redis loads its data, ioredis asks it this often whether it is ready.
    maxLoadingRetryTime: RECONNECT_DELAY_MAX_MS,
    retryStrategy: (times) => Math.min(50 * times, RECONNECT_DELAY_MAX_MS),
    ...ROLE_OPTIONS[role],
  };
  const redis =
    role === "request"
      ? new RequestRedis(url, { ...options, commandTimeoutMs: REQUEST_COMMAND_TIMEOUT_MS })
      : new WaitingRedis(url, options);
  if (role === "subscriber") {
    pingRegularly(redis);
  }
  logAvailability(redis, role, log);
  return redis;
}

function pingRegularly(redis: Redis): void {
  const timer = setInterval(() => {
    // A connection that isn't ready would queue each PING: thousands in a night without Redis.
    if (redis.status === "ready") {
      redis.ping().catch(() => {});
    }
  }, PING_INTERVAL_MS).unref();
  redis.once("end", () => clearInterval(timer));
}

/** Logs each change once; while Redis is away, every attempt to reconnect raises an error. */
function logAvailability(redis: Redis, role: RedisRole, log: Logger): void {
  let isAway = false;
  redis.on("error", (err) => {
    if (!isAway) {
      log.warn({ event: "redis_away", role, err });
    }
    isAway = true;
  });
  redis.on("ready", () => {
    if (isAway) {
      log.info({ event: "redis_back", role });
    }
    isAway = false;
  });
}

/** Resolves to true once the connection is ready, or to false after `timeoutMs`. */
export function waitForRedis(redis: Redis, timeoutMs: number): Promise<boolean> {
  if (redis.status === "ready") {
    return Promise.resolve(true);
  }
  return new Promise((resolve) => {
    const settle = (isReady: boolean) => {
      clearTimeout(timer);
      redis.off("ready", onReady);
      resolve(isReady);
    };
    const onReady = () => settle(true);
    const timer = setTimeout(() => settle(false), timeoutMs);
    redis.on("ready", onReady);
  });
}
