import { Redis } from "ioredis";

/**
 * A connection whose commands wait until Redis accepts them. ioredis' own connection also waits while Redis is away. But
 * if Redis is back and turns a connection down (it requires another password, or accepts no more clients), ioredis
 * rejects all waiting commands. Here they go on waiting, because the next connection may be accepted.
 *
 * Commands that were sent but not answered are sent again on the next connection. So a command may take effect twice.
 */
export class WaitingRedis extends Redis {
  override recoverFromFatalError(...[commandError, err, options]: FatalError): void {
    super.recoverFromFatalError(commandError, err, { ...options, offlineQueue: false });
  }
}

type FatalError = Parameters<Redis["recoverFromFatalError"]>;
