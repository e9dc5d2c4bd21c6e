import { Command, Redis, type RedisOptions } from "ioredis";

const TICK_MS = 50;

/** As Redis takes them; replies of ioredis' own forms alone. */
export type ConnectionOptions = Omit<RedisOptions, "replyMapping">;

/**
 * A connection for callers who wait. A command is given up after `commandTimeoutMs`, to a tick of 50 ms; its fate is then
 * unknown. A tick is late when this process stands still, and then counts once: ioredis' own timers (`commandTimeout`)
 * would all run out in a stall while the replies lie there unread, and cost each command a timer.
 *
 * Nothing is sent a second time, so a command lets go of its arguments once it is written: users' texts else outlive it
 * by far in V8's heap, and moving them there was most of what its pauses were (docs/adr/0024).
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
    // Together: what is under way when a connection ends is rejected, and never sent on the next one.
    super(url, { ...options, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false });
    this.#ageMaxTicks = Math.ceil(commandTimeoutMs / TICK_MS);
    this.#ticks = setInterval(() => this.#tick(), TICK_MS).unref();
    this.once("end", () => clearInterval(this.#ticks));
  }

  override sendCommand(...args: Parameters<Redis["sendCommand"]>): unknown {
    const unanswered = this.commandQueue.length;
    const reply = super.sendCommand(...args);
    const written = this.commandQueue.length - unanswered;
    this.#sent += written;
    if (written > 0) {
      args[0].args = [];
    }
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
