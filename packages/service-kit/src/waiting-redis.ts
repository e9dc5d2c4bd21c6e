import { Redis } from "ioredis";

/**
 * A connection whose commands wait until Redis takes them. ioredis' own waits for a Redis that is away, but rejects all that
 * wait if one that is back turns a connection down: it wants another password, or takes no more clients. The next one
 * may be taken, so here they go on waiting.
 *
 * What a connection had sent is sent again on the next one, so a command may take effect twice.
 */
export class WaitingRedis extends Redis {
  override recoverFromFatalError(...[commandError, err, options]: FatalError): void {
    super.recoverFromFatalError(commandError, err, { ...options, offlineQueue: false });
  }
}

type FatalError = Parameters<Redis["recoverFromFatalError"]>;
