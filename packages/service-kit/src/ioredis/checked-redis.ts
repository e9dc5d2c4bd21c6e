import { redisErrorKind } from "@adrelay/core";
import { Command, Redis, type RedisOptions } from "ioredis";

/** Options of a connection. `replyMapping` is left out, because our code expects ioredis' default forms of replies. */
export type ConnectionOptions = Omit<RedisOptions, "replyMapping">;

/** What an INFO that the user may not run is answered with: the oldest supported version, and that nothing is known. */
export const INFO_DENIED = "info_denied:1";
const INFO_WHEN_DENIED = `redis_version:6.2.0\r\n${INFO_DENIED}\r\n`;

/**
 * What all our connections have in common.
 *
 * 1. A connection whose database can't be selected is never ready. ioredis' own would use database 0 instead.
 * 2. A subscription that is refused when ioredis renews it after a reconnection ends nothing.
 * 3. INFO is never refused: ioredis and BullMQ both ask it at each connection, and neither needs more than the version.
 */
export class CheckedRedis extends Redis {
  constructor(target: string | ConnectionOptions, options: ConnectionOptions = {}) {
    if (typeof target === "string") {
      super(target, options);
    } else {
      super(target);
    }
    this.on("error", (error: unknown) => {
      if (Object(error).command?.name === "select") {
        this.disconnect(true);
      }
    });
  }

  override sendCommand(...args: Parameters<Redis["sendCommand"]>): unknown {
    const [command] = args;
    if (command instanceof Command && command.name === "info") {
      const { reject } = command;
      command.reject = (error) =>
        redisErrorKind(error) === "no_permission" ? command.resolve(INFO_WHEN_DENIED) : reject(error);
    }
    if (command instanceof Command && command.name === "subscribe") {
      // Who subscribes gets the error. When ioredis subscribes again, nobody does.
      command.promise.catch(() => {});
    }
    return super.sendCommand(...args);
  }
}
