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
/**
 * After so many heartbeats at which Redis saw no lifeline, the subscriber's connection is replaced: after a planned fail-over it may
 * still be one to the old primary, which goes on as a replica and closes nothing.
 */
const UNSEEN_BEFORE_REPLACEMENT = 3;
/** After so many the process says so: the replacement didn't help. */
const UNSEEN_MAX = 5;
/** A replacement that didn't help is repeated after the first time, and then after twice the time before, up to the last. */
const REPLACEMENT_WAIT_MS = { first: 30_000, last: 3_600_000 } as const;

export class Lifeline {
  readonly #parts: LifelineParts;
  #opening: Promise<void> | undefined;
  #refusal: unknown;
  #isSubscribed = false;
  #unseen = 0;
  #isNoted = false;
  #replacementDueMs = 0;
  #replacementWaitMs: number = REPLACEMENT_WAIT_MS.first;

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
   * To be told at each heartbeat whether Redis sees the subscription. It doesn't if it permits none, if something between hides
   * it, or if the subscriber is connected to another Redis than the heartbeat. That is logged once.
   */
  report(isSeen: boolean): void {
    if (isSeen) {
      this.#unseen = 0;
      this.#isNoted = false;
      this.#replacementDueMs = 0;
      this.#replacementWaitMs = REPLACEMENT_WAIT_MS.first;
      return;
    }
    this.#unseen += 1;
    this.#replaceIfDue();
    if (this.#unseen >= UNSEEN_MAX && !this.#isNoted) {
      this.#isNoted = true;
      this.#parts.log.warn({ event: "lifeline_unseen", err: this.#refusal });
    }
  }

  /** ioredis connects and subscribes again. */
  #replaceIfDue(): void {
    const { subscriber } = this.#parts;
    const isInUse = this.#isSubscribed && subscriber.status === "ready";
    if (this.#unseen >= UNSEEN_BEFORE_REPLACEMENT && isInUse && performance.now() >= this.#replacementDueMs) {
      this.#replacementDueMs = performance.now() + this.#replacementWaitMs;
      this.#replacementWaitMs = Math.min(2 * this.#replacementWaitMs, REPLACEMENT_WAIT_MS.last);
      subscriber.disconnect(true);
    }
  }

  async #subscribe(): Promise<void> {
    const { subscriber, channel } = this.#parts;
    try {
      await subscriber.subscribe(channel);
      this.#isSubscribed = true;
    } catch (error) {
      this.#refusal = error;
    }
  }
}
