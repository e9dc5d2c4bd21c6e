import type { Redis, RedisOptions } from "ioredis";
import type { Logger } from "pino";
import { type ConnectionOptions, RequestRedis } from "./request-redis.ts";
import { WaitingRedis } from "./waiting-redis.ts";

/** What a connection is for, which decides how it behaves while Redis is away. */
export type RedisRole =
  /** Fails at once and recovers within a second: a caller waits for the answer. */
  | "request"
  /** Waits for Redis as long as it takes: BullMQ's worker, which blocks on it. */
  | "worker"
  /** Listens to channels. */
  | "subscriber";

/** A command of a `request` connection is given up after this; its fate is then unknown. */
const REQUEST_COMMAND_TIMEOUT_MS = 700;
const RECONNECT_DELAY_MAX_MS = 500;
const CONNECT_TIMEOUT_MS = 2000;
/**
 * A connection on which an answer is due and nothing comes for this long is given up for a new one: its
 * other end may be gone without a word. A worker's blocks for up to ten seconds on purpose.
 */
const REQUEST_SILENCE_MAX_MS = 1500;
const BLOCKING_SILENCE_MAX_MS = 20_000;
/** A connection that only listens is asked for a sign of life this often. */
const HEARTBEAT_MS = 5000;

const ROLE_OPTIONS = {
  request: {
    enableOfflineQueue: false,
    socketTimeout: REQUEST_SILENCE_MAX_MS,
  },
  // No command time-out here: BullMQ blocks on this connection on purpose.
  worker: { maxRetriesPerRequest: null, socketTimeout: BLOCKING_SILENCE_MAX_MS },
  subscriber: { maxRetriesPerRequest: null, socketTimeout: BLOCKING_SILENCE_MAX_MS },
} as const satisfies Record<RedisRole, RedisOptions>;

/**
 * Opens a connection that reconnects for ever, quickly: the default back-off of up to 20 s would keep
 * intake closed long after Redis is back.
 */
export function connectRedis(url: string, role: RedisRole, log: Logger): Redis {
  const options: ConnectionOptions = {
    connectTimeout: CONNECT_TIMEOUT_MS,
    // One that reads its data is asked as often whether it has them.
    maxLoadingRetryTime: RECONNECT_DELAY_MAX_MS,
    retryStrategy: (times) => Math.min(50 * times, RECONNECT_DELAY_MAX_MS),
    ...ROLE_OPTIONS[role],
  };
  const redis =
    role === "request"
      ? new RequestRedis(url, { ...options, commandTimeoutMs: REQUEST_COMMAND_TIMEOUT_MS })
      : new WaitingRedis(url, options);
  if (role === "subscriber") {
    const heartbeat = setInterval(() => {
      // One that isn't ready keeps what it is asked: a night without Redis would be thousands of these.
      if (redis.status === "ready") {
        redis.ping().catch(() => {});
      }
    }, HEARTBEAT_MS).unref();
    redis.once("end", () => clearInterval(heartbeat));
  }
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
  return redis;
}

/** Resolves once the connection is ready, or false after `timeoutMs`. */
export function waitForRedis(redis: Redis, timeoutMs: number): Promise<boolean> {
  if (redis.status === "ready") {
    return Promise.resolve(true);
  }
  return new Promise((resolve) => {
    const done = (isReady: boolean) => {
      clearTimeout(timer);
      redis.off("ready", onReady);
      resolve(isReady);
    };
    const onReady = () => done(true);
    const timer = setTimeout(() => done(false), timeoutMs);
    redis.on("ready", onReady);
  });
}
