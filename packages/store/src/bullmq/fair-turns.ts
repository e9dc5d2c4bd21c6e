/**
 * Gives turns to the jobs that BullMQ put in its list of waiting jobs (bullmq/turns.lua): delayed jobs whose time has
 * come, replayed ones, stalled ones, and those of older gateways. Intake gives new jobs their turns itself.
 *
 * Every worker does this, and at any time. Two that do it at once move different jobs.
 */
import type { StoreKeys } from "../redis/keys.ts";
import type { RunScript } from "../redis/scripts.ts";
import type { DeliveryQueue } from "./queue.ts";

export interface FairTurnsParts {
  /** Fails fast: a round that fails is repeated. */
  readonly run: RunScript;
  readonly keys: StoreKeys;
  readonly queue: DeliveryQueue;
  /** Called with what a round failed with. */
  onError(error: unknown): void;
}

/** What came to the list within this time is delivered before those who wait in turn. */
const INTERVAL_MS = 50;
/** Jobs in a call, which reads their data. With texts of 2 KB it holds Redis up for a millisecond. */
const BATCH = 200;

export class FairTurns {
  readonly #parts: FairTurnsParts;
  readonly #stopped = Promise.withResolvers<void>();
  #isStopped = false;
  #running: Promise<void> | undefined;

  constructor(parts: FairTurnsParts) {
    this.#parts = parts;
  }

  /** Begins to give turns. Does nothing if it was started or stopped before. */
  start(): void {
    if (!this.#isStopped) {
      this.#running ??= this.#repeat();
    }
  }

  get isRunning(): boolean {
    return this.#running !== undefined && !this.#isStopped;
  }

  /** Ends after the call that is under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopped.resolve();
    await this.#running;
  }

  async #repeat(): Promise<void> {
    while (!this.#isStopped) {
      const hasMore = await this.#giveTurns();
      if (!hasMore) {
        await this.#pause();
      }
    }
  }

  /** Whether more jobs wait for their turn. */
  async #giveTurns(): Promise<boolean> {
    const { run, keys, queue, onError } = this.#parts;
    try {
      const args = [queue.jobPrefix, BATCH];
      const call = { keys: [...queue.waitingKeys, keys.turns], args };
      return Number(await run("bullmq/give-turns", call)) === 1;
    } catch (error) {
      onError(error);
      return false;
    }
  }

  async #pause(): Promise<void> {
    const over = Promise.withResolvers<void>();
    const timer = setTimeout(over.resolve, INTERVAL_MS);
    await Promise.race([over.promise, this.#stopped.promise]);
    clearTimeout(timer);
  }
}
