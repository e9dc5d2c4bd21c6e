/**
 * What our user of Redis may not do. Each command that the relay or BullMQ sends, or that their scripts run, is tried on
 * a key that isn't there: Redis checks the right before all else.
 */
import { isForbiddenByRedis, redisErrorKind } from "@adrelay/core";
import type { Redis } from "ioredis";
import { z } from "zod";
import { storeKeys } from "./keys.ts";
import { ScriptLibrary, StoreRefusalError } from "./scripts.ts";

/** Commands that a process needs, and those without which it works less well. */
interface ForbiddenCommands {
  readonly needed: readonly string[];
  readonly wanted: readonly string[];
}

/** With these, Redis is asked about itself, callers hear of outcomes at once, and a session's ad responses are found. */
const WANTED: ReadonlySet<string> = new Set(["info", "config", "publish", "pubsub", "scan", "subscribe"]);
/** Before 7.0.8, Redis may block for ever instead of for a millisecond. */
const BLOCK_SECONDS = 0.01;

const failedSchema = z.array(z.tuple([z.string(), z.string()]));

/**
 * @param redis a connection for commands
 * @param subscriber a connection that only listens; without one, nothing is said of `subscribe`
 */
export async function loadMissingRights(redis: Redis, subscriber?: Redis): Promise<ForbiddenCommands> {
  const { queuePrefix, lifelinePrefix } = storeKeys("0");
  const key = `${queuePrefix}:rights`;
  const { source, sha } = new ScriptLibrary().load("redis/rights");
  const channels = [`adrelay:outcomes:rights`, `${lifelinePrefix}rights`];
  const inScripts = await redis
    .eval(source, 1, key, ...channels)
    .then((reply) => failedSchema.parse(reply).flatMap(forbiddenOf), forbids("eval"));
  const tried = await Promise.all([
    redis.evalsha(sha, 1, key, ...channels).then(() => [], forbids("evalsha")),
    redis.bzpopmin(key, BLOCK_SECONDS).then(() => [], forbids("bzpopmin")),
    redis.xrevrange(key, "+", "-", "COUNT", 1).then(() => [], forbids("xrevrange")),
    redis.ping().then(() => [], forbids("ping")),
    redis.call("INFO", "server").then(() => [], forbids("info")),
    redis.config("GET", "appendfsync").then(() => [], forbids("config")),
    ...(subscriber?.status === "ready" ? channels.map((channel) => trySubscribe(subscriber, channel)) : []),
  ]);
  const forbidden = [...new Set([...inScripts, ...tried.flat()])].sort();
  return {
    needed: forbidden.filter((command) => !WANTED.has(command)),
    wanted: forbidden.filter((command) => WANTED.has(command)),
  };
}

async function trySubscribe(subscriber: Redis, channel: string): Promise<string[]> {
  try {
    await subscriber.subscribe(channel);
    await subscriber.unsubscribe(channel);
    return [];
  } catch (error) {
    return forbids("subscribe")(error);
  }
}

/** Names a command of a script if Redis didn't permit it, or doesn't know it. */
function forbiddenOf([command, message]: readonly [string, string]): string[] {
  return isForbiddenByRedis(new StoreRefusalError(message)) ? [command] : [];
}

/** The same for a command of ours. Rejects if Redis gave no answer. */
function forbids(command: string): (error: unknown) => string[] {
  return (error) => {
    if (isForbiddenByRedis(error)) {
      return [command];
    }
    // These words come after the check of rights.
    if (redisErrorKind(error) === "other") {
      throw error;
    }
    return [];
  };
}
