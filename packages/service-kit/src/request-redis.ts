import type { Socket } from "node:net";
import { Command, Redis, type RedisOptions } from "ioredis";

const TICK_MS = 50;

/** As Redis takes them; replies of ioredis' own forms alone. */
export type ConnectionOptions = Omit<RedisOptions, "replyMapping">;

/**
 * A connection for callers who wait, made for many commands at once.
 *
 * **Joined writes.** Commands of one turn of the event loop leave in one write. Under load a turn answers many
 * requests, and a system call for each of their commands was a fifth of what intake cost. ioredis' own auto-pipelining
 * would tie the commands of a turn together: none is answered before all are, and the next turn waits for that.
 *
 * **A time-out in ticks.** A command is given up after `commandTimeoutMs`, to a tick of 50 ms; its fate is then
 * unknown. A tick is late when this process stands still, and then counts once: ioredis' own timers (`commandTimeout`)
 * would all run out in a stall while the replies lie there unread, and cost each command a timer.
 *
 * Nothing else changes: commands keep their order, and each has its own reply and fate.
 */
export class RequestRedis extends Redis {
  readonly #ticks: NodeJS.Timeout;
  /** How many commands had been sent at each of the last ticks, the oldest first. */
  readonly #sentAtTicks: number[] = [];
  readonly #ageMaxTicks: number;
  #sent = 0;

  constructor(
    url: string,
    { commandTimeoutMs, ...options }: ConnectionOptions & { commandTimeoutMs: number },
  ) {
    super(url, options);
    this.#ageMaxTicks = Math.ceil(commandTimeoutMs / TICK_MS);
    this.#ticks = setInterval(() => this.#tick(), TICK_MS).unref();
    this.once("end", () => clearInterval(this.#ticks));
  }

  override sendCommand(...args: Parameters<Redis["sendCommand"]>): unknown {
    // Undefined before the first connection is there, whatever its type says.
    const stream: Socket | undefined = this.stream;
    if (stream?.writableCorked === 0) {
      stream.cork();
      setImmediate(() => stream.uncork());
    }
    const unanswered = this.commandQueue.length;
    const reply = super.sendCommand(...args);
    this.#sent += this.commandQueue.length - unanswered;
    return reply;
  }

  /** Redis answers in order, so that the oldest commands are the first that wait. */
  #tick(): void {
    const sentBefore = this.#sentAtTicks.length > this.#ageMaxTicks ? (this.#sentAtTicks.shift() ?? 0) : 0;
    this.#sentAtTicks.push(this.#sent);
    const answered = this.#sent - this.commandQueue.length;
    for (let at = 0; at < sentBefore - answered; at += 1) {
      const command = this.commandQueue.peekAt(at)?.command;
      if (command instanceof Command && !command.isSettled) {
        command.reject(new Error("Command timed out"));
      }
    }
  }
}
