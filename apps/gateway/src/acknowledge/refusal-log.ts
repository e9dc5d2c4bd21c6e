/** Logs refused acknowledgments, at most one line a second: there may be thousands, all for the same reason. */
import type { Logger } from "pino";

/** A refused acknowledgment. */
export interface Refusal {
  readonly requestId: string;
  readonly adResponseId: string;
  readonly err: unknown;
}

const INTERVAL_MS = 1000;

export class RefusalLog {
  readonly #log: Logger;
  /** The latest one that isn't logged yet, and how many there are. */
  #waiting: { readonly latest: Refusal; readonly count: number } | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Logs it now, or within a second together with others. */
  add(latest: Refusal): void {
    this.#waiting = { latest, count: (this.#waiting?.count ?? 0) + 1 };
    if (this.#timer === undefined) {
      this.#write();
    }
  }

  #write(): void {
    this.#timer = undefined;
    if (this.#waiting !== undefined) {
      const { latest, count } = this.#waiting;
      const { requestId: request_id, adResponseId: ad_response_id, err } = latest;
      this.#log.warn({ event: "intake_failed", count, request_id, ad_response_id, err });
      this.#waiting = undefined;
      this.#timer = setTimeout(() => this.#write(), INTERVAL_MS).unref();
    }
  }
}
