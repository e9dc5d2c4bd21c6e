/**
 * While Redis refuses writes (it is a replica, a save failed, replicas are missing), the outcomes of attempts wait here
 * and are booked again and again. If the jobs were released instead, the attempts would be made a second time. The
 * waiting jobs keep their slots, and Redis hands out no other jobs meanwhile, so no attempt is made that can't be
 * booked.
 */
import { setTimeout as wait } from "node:timers/promises";
import { redisErrorKind } from "@adrelay/core";
import type { StoreLog } from "../store-log.ts";

export interface BookingRetryOptions {
  readonly log: StoreLog;
  /** A process that stops doesn't book again: its jobs stall, and another worker runs them. */
  isStopping(): boolean;
}

const RETRY_AFTER_MS = 250;

export class BookingRetry {
  readonly #options: BookingRetryOptions;
  #isRefused = false;

  constructor(options: BookingRetryOptions) {
    this.#options = options;
  }

  /** Books until Redis accepts it. Rejects with any error but a refusal, and with the refusal at a stop. */
  async run<T>(book: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const reply = await book();
        this.#logTaken();
        return reply;
      } catch (error) {
        if (!isRefusal(error) || this.#options.isStopping()) {
          throw error;
        }
        this.#logRefusal(error);
        await wait(RETRY_AFTER_MS);
      }
    }
  }

  #logRefusal(err: unknown): void {
    if (!this.#isRefused) {
      this.#options.log.warn({ event: "booking_refused", err });
    }
    this.#isRefused = true;
  }

  #logTaken(): void {
    if (this.#isRefused) {
      this.#options.log.info({ event: "booking_resumed" });
    }
    this.#isRefused = false;
  }
}

/** Whether Redis may accept the same command later. */
function isRefusal(error: unknown): boolean {
  const kind = redisErrorKind(error);
  return kind === "refuses_writes" || kind === "no_permission";
}
