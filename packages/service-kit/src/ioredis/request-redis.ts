import { Command, type Redis } from "ioredis";
import { CheckedRedis, type ConnectionOptions } from "./checked-redis.ts";

const TICK_MS = 50;

/** A command got no answer in time. Whether Redis has run it is unknown. */
class CommandTimeoutError extends Error {
  override readonly name = "CommandTimeoutError";
}

/** A command was not sent, because there is no connection to Redis. */
class RedisAwayError extends Error {
  override readonly name = "RedisAwayError";
}

const SCRIPT_COMMANDS: ReadonlySet<string> = new Set(["eval", "evalsha"]);

/** ioredis says this of a command that it can neither write nor keep. */
const NOT_WRITABLE = /^Stream isn't writeable/;

/**
 * A connection for commands on whose answer a caller waits.
 *
 * 1. A command is rejected `commandTimeoutMs` after it was sent, to within a tick of 50 ms. Whether Redis has run it is
 *    then unknown. If this process is blocked, a tick comes late and counts once, so the answers that arrived
 *    meanwhile are read before anything is rejected. ioredis' own `commandTimeout` would reject them all, and needs a
 *    timer for each command.
 * 2. No command is sent twice. Commands that are unanswered when a connection ends are rejected.
 * 3. A script's arguments, which hold users' texts, are let go once they are written. Otherwise V8 moves many of them to
 *    where it rarely collects garbage.
 */
export class RequestRedis extends CheckedRedis {
  readonly #ticks: NodeJS.Timeout;
  /** How many commands had been sent at each of the last ticks, oldest first. */
  readonly #sentAtTicks: number[] = [];
  readonly #ageMaxTicks: number;
  #sent = 0;

  constructor(
    url: string,
    { commandTimeoutMs, ...options }: ConnectionOptions & { commandTimeoutMs: number },
  ) {
    // Together these two options keep rule 2.
    super(url, { ...options, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false });
    this.#ageMaxTicks = Math.ceil(commandTimeoutMs / TICK_MS);
    this.#ticks = setInterval(() => this.#tick(), TICK_MS).unref();
    this.once("end", () => clearInterval(this.#ticks));
  }

  override sendCommand(...args: Parameters<Redis["sendCommand"]>): unknown {
    if (this.status !== "ready" && args[0] instanceof Command) {
      nameAbsence(args[0]);
    }
    const unansweredBefore = this.commandQueue.length;
    const reply = super.sendCommand(...args);
    const written = this.commandQueue.length - unansweredBefore;
    this.#sent += written;
    const [command, pipeline] = args;
    const isWritten = written > 0 && pipeline === undefined;
    if (isWritten && command instanceof Command && SCRIPT_COMMANDS.has(command.name)) {
      command.args = [];
    }
    return reply;
  }

  /** Rejects the commands that are too old. Redis answers in order, so these are at the front of the queue. */
  #tick(): void {
    const sentBefore = this.#sentAtTicks.length > this.#ageMaxTicks ? (this.#sentAtTicks.shift() ?? 0) : 0;
    this.#sentAtTicks.push(this.#sent);
    const answered = this.#sent - this.commandQueue.length;
    for (let at = 0; at < sentBefore - answered; at += 1) {
      const command = this.commandQueue.peekAt(at)?.command;
      if (command instanceof Command && !command.isSettled) {
        command.reject(new CommandTimeoutError("Command timed out"));
      }
    }
  }
}

function nameAbsence(command: Command): void {
  const { reject } = command;
  command.reject = (error) =>
    reject(NOT_WRITABLE.test(error.message) ? new RedisAwayError("Redis is away") : error);
}
