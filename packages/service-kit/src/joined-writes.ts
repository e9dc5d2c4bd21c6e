import type { Socket } from "node:net";
import { Redis } from "ioredis";

/**
 * A connection whose commands of one turn of the event loop leave in one write. Under load a turn answers many
 * requests, and a system call for each of their commands was a fifth of what intake cost.
 *
 * Nothing else changes: commands keep their order, and each has its own reply, time-out and fate. ioredis' own
 * auto-pipelining would tie those of a turn together: none is answered before all are, and the next turn waits for that.
 */
export class JoinedWritesRedis extends Redis {
  override sendCommand(...args: Parameters<Redis["sendCommand"]>): unknown {
    // Undefined before the first connection is there, whatever its type says.
    const stream: Socket | undefined = this.stream;
    if (stream?.writableCorked === 0) {
      stream.cork();
      setImmediate(() => stream.uncork());
    }
    return super.sendCommand(...args);
  }
}
