import type { Redis, RedisOptions } from "ioredis";
import { CheckedRedis } from "./checked-redis.ts";

/**
 * A connection whose commands wait until Redis accepts them. ioredis' own connection also waits while Redis is away. But
 * if Redis is back and turns a connection down (it requires another password, or accepts no more clients), ioredis
 * rejects all waiting commands. Here they go on waiting, because the next connection may be accepted.
 *
 * Commands that were sent but not answered are sent again on the next connection. So a command may take effect twice.
 */
export class WaitingRedis extends CheckedRedis {
  /** BullMQ makes the connection on which it blocks by this. */
  override duplicate<Override extends Partial<RedisOptions> | undefined = undefined>(
    override?: Override,
  ): Duplicate<Override> {
    const copy: unknown = new WaitingRedis({ ...this.options, ...override });
    // The type differs from this class only in the forms of replies, which BullMQ doesn't change.
    return copy as Duplicate<Override>;
  }

  override recoverFromFatalError(...[commandError, err, options]: FatalError): void {
    super.recoverFromFatalError(commandError, err, { ...options, offlineQueue: false });
  }
}

type Duplicate<Override extends Partial<RedisOptions> | undefined> = ReturnType<
  typeof Redis.prototype.duplicate<Override>
>;
type FatalError = Parameters<Redis["recoverFromFatalError"]>;
