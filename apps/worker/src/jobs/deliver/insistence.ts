/**
 * While Redis refuses writes (a replica, a failed save, too few replicas), what came of an attempt waits here and is asked to
 * be booked again and again: were its job given up, the attempt would be made a second time. The jobs that wait keep their
 * places, and Redis hands out no others meanwhile, so nothing goes out that couldn't be booked.
 */
import { setTimeout as wait } from "node:timers/promises";
import { isRefusedForNow } from "@adrelay/ledger";
import type { Logger } from "pino";

export interface InsistenceOptions {
  readonly log: Logger;
  /** A process that stops insists no more: its jobs stall, and are run again. */
  isStopping(): boolean;
}

const ASK_AGAIN_MS = 250;

export class Insistence {
  readonly #options: InsistenceOptions;
  #isRefused = false;

  constructor(options: InsistenceOptions) {
    this.#options = options;
  }

  /** Asks until it is taken. Rejects with what is no refusal, and at a stop. */
  insist<T>(ask: () => Promise<T>): Promise<T> {
    return ask().catch((error: unknown) => this.askAgain(error, ask));
  }

  /** As `insist`, after it has failed with `error`. */
  async askAgain<T>(error: unknown, ask: () => Promise<T>): Promise<T> {
    let failure = error;
    while (isRefusedForNow(failure) && !this.#options.isStopping()) {
      this.#noteRefusal(failure);
      await wait(ASK_AGAIN_MS);
      try {
        const reply = await ask();
        this.#noteTaken();
        return reply;
      } catch (again) {
        failure = again;
      }
    }
    throw failure;
  }

  #noteRefusal(err: unknown): void {
    if (!this.#isRefused) {
      this.#options.log.warn({ event: "booking_refused", err });
    }
    this.#isRefused = true;
  }

  #noteTaken(): void {
    if (this.#isRefused) {
      this.#options.log.info({ event: "booking_resumed" });
    }
    this.#isRefused = false;
  }
}
