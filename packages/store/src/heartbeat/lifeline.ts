/**
 * A process' lifeline: its subscription of a Redis channel of its own, on which nobody publishes. If the process is
 * killed, the kernel closes its connections, and Redis ends the subscription at once. If the process only stands still,
 * the connection and the subscription stay. So a silent process without its lifeline is gone (gone.lua).
 *
 * Not noticed: a machine that vanishes without closing its connections.
 */
import { setTimeout as wait } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { StoreLog } from "../store-log.ts";

export interface LifelineParts {
  /** A connection that only listens to channels. */
  readonly subscriber: Redis;
  readonly channel: string;
  readonly log: StoreLog;
}

/** The first heartbeat waits this long for the lifeline. */
const FIRST_WAIT_MS = 500;
/** After so many heartbeats at which Redis saw no lifeline, the process says so. */
const UNSEEN_MAX = 5;

export class Lifeline {
  readonly #parts: LifelineParts;
  #opening: Promise<void> | undefined;
  #refusal: unknown;
  #unseen = 0;

  constructor(parts: LifelineParts) {
    this.#parts = parts;
  }

  /**
   * Subscribes, and waits a moment for it; a second call does nothing. ioredis waits for Redis, and subscribes again after
   * each reconnection.
   */
  async open(): Promise<void> {
    if (this.#opening === undefined) {
      this.#opening = this.#subscribe();
      await Promise.race([this.#opening, wait(FIRST_WAIT_MS, undefined, { ref: false })]);
    }
  }

  /**
   * To be told at each heartbeat whether Redis sees the subscription. It doesn't if it permits none, or if something between
   * hides it. That is logged once.
   */
  report(isSeen: boolean): void {
    this.#unseen = isSeen ? 0 : this.#unseen + 1;
    if (this.#unseen === UNSEEN_MAX) {
      this.#unseen = Number.POSITIVE_INFINITY;
      this.#parts.log.warn({ event: "lifeline_unseen", err: this.#refusal });
    }
  }

  async #subscribe(): Promise<void> {
    const { subscriber, channel } = this.#parts;
    try {
      await subscriber.subscribe(channel);
    } catch (error) {
      this.#refusal = error;
    }
  }
}
