import type { SecureContext } from "node:tls";
import { explainRedisError, redisErrorWord } from "@adrelay/core";
import type { Redis, RedisOptions } from "ioredis";
import type { Logger } from "pino";
import type { ConnectionOptions } from "./ioredis/checked-redis.ts";
import { RequestRedis } from "./ioredis/request-redis.ts";
import { WaitingRedis } from "./ioredis/waiting-redis.ts";
import { loadRefusal, type Refusal } from "./redis-greeting.ts";
import { explainTlsError } from "./redis-tls-faults.ts";

/** Where Redis is, and how it is reached. */
export interface RedisTarget {
  readonly url: string;
  /** For a rediss:// URL: our certificates, and those that we trust; undefined for those that Node trusts. */
  readonly secureContext?: SecureContext | undefined;
  /** The name in Redis' certificate; undefined if it is the host of the URL. */
  readonly serverName?: string | undefined;
}

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
/**
 * A connection whose command meets a replica is replaced: after a fail-over, the name or the proxy may lead to the primary
 * by now. At most once in this time, because the replica may remain one.
 */
const RECONNECT_INTERVAL_MS = 1000;
const RECONNECT_WORDS: ReadonlySet<string> = new Set(["READONLY", "MASTERDOWN", "MOVED"]);
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
export function connectRedis(where: string | RedisTarget, role: RedisRole, log: Logger): Redis {
  const target = typeof where === "string" ? { url: where } : where;
  const { url } = target;
  const options: ConnectionOptions = {
    ...tlsOptions(target),
    connectTimeout: CONNECT_TIMEOUT_MS,
    // While Redis loads its data, ioredis asks it this often whether it is ready.
    maxLoadingRetryTime: RECONNECT_DELAY_MAX_MS,
    reconnectOnError: makeReconnectOnError(),
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

function tlsOptions({ url, secureContext, serverName }: RedisTarget): ConnectionOptions {
  const tls = {
    ...(secureContext === undefined ? {} : { secureContext }),
    ...(serverName === undefined ? {} : { servername: serverName }),
  };
  return url.startsWith("rediss:") ? { tls } : {};
}

/** The command that met the error is rejected. Its caller decides whether it is sent again. */
function makeReconnectOnError(): (error: Error) => boolean {
  let reconnectedAtMs = Number.NEGATIVE_INFINITY;
  return (error) => {
    const isDue = performance.now() - reconnectedAtMs >= RECONNECT_INTERVAL_MS;
    if (!isDue || !RECONNECT_WORDS.has(redisErrorWord(error))) {
      return false;
    }
    reconnectedAtMs = performance.now();
    return true;
  };
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

/** Errors of one outage that are explained: each has another code or message. */
const EXPLAINED_MAX = 10;

/**
 * Logs each change once: that Redis is away, that it is so for another reason by now, and that it is back. While it is away,
 * every attempt to reconnect raises an error.
 */
function logAvailability(redis: Redis, role: RedisRole, log: Logger): void {
  const errors = new Set<string>();
  const reasons = new Set<string>();
  // An explanation may take a moment. The lines keep their order.
  let logged = Promise.resolve();
  redis.on("error", (err) => {
    const error = String(Object(err).code ?? Object(err).message);
    if (errors.has(error) || errors.size >= EXPLAINED_MAX) {
      return;
    }
    errors.add(error);
    logged = logged.then(async () => {
      const why = await explainAway(redis, err);
      // An error that can't be explained is no news while Redis is away.
      if (reasons.size === 0 || (why !== undefined && !reasons.has(why))) {
        log.warn({ event: "redis_away", role, why, err });
      }
      reasons.add(why ?? "");
    });
  });
  redis.on("ready", () => {
    if (errors.size > 0) {
      logged = logged.then(() => {
        log.info({ event: "redis_back", role });
        reasons.clear();
      });
    }
    errors.clear();
  });
}

/**
 * Why a connection can't be used, for people; undefined if nothing more is known than its error. A Redis with too many
 * clients says so and closes the connection, but what we have written by then often makes an EPIPE of it. So it is asked.
 */
export async function explainAway(redis: Redis, error: unknown): Promise<string | undefined> {
  const why = explainConnection(redis, error) ?? explainRefusal(await loadRefusal(redis.options));
  return why === undefined ? undefined : `Redis ${why}`;
}

function explainConnection(redis: Redis, error: unknown): string | undefined {
  const isTls = redis.options.tls !== undefined;
  return explainRedisError(error) ?? (isTls ? explainTlsError(error) : undefined);
}

function explainRefusal(refusal: Refusal | undefined): string | undefined {
  return refusal?.kind === "error" ? explainRedisError(refusal.error) : refusal?.why;
}

/** Whether Redis refused to select the database of the URL. */
export function isWrongDatabase(error: unknown): boolean {
  return Object(error).command?.name === "select";
}

/** The result of waiting for a connection. `error`: the latest one that the connection met. */
export type WaitResult =
  | { readonly kind: "ready" }
  | { readonly kind: "away"; readonly error: Error | undefined };

/** Resolves once the connection is ready, or after `timeoutMs`. */
export function waitForRedis(redis: Redis, timeoutMs: number): Promise<WaitResult> {
  if (redis.status === "ready") {
    return Promise.resolve({ kind: "ready" });
  }
  let error: Error | undefined;
  return new Promise((resolve) => {
    const settle = (result: WaitResult) => {
      clearTimeout(timer);
      redis.off("ready", onReady).off("error", onError);
      resolve(result);
    };
    const onReady = () => settle({ kind: "ready" });
    const onError = (latest: Error) => {
      error = latest;
      if (isWrongDatabase(latest)) {
        settle({ kind: "away", error });
      }
    };
    const timer = setTimeout(() => settle({ kind: "away", error }), timeoutMs);
    redis.on("ready", onReady).on("error", onError);
  });
}
