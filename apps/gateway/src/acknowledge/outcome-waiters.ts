import { randomUUID } from "node:crypto";
import { type AdResponseId, type OutcomeNotice, outcomeNoticeSchema } from "@adrelay/contract";
import type { Caller } from "@adrelay/relay-kit";
import type { Redis } from "ioredis";

/** A caller's wait for the outcome of its acknowledgment. */
export interface OutcomeWait {
  /** Channel on which a worker sends the outcome. */
  readonly channel: string;
  /** True if no notice can come, because Redis doesn't permit the channel. Then the ledger must be asked. */
  readonly isDeaf: boolean;
  /** The next notice, or undefined once `timeoutMs` has passed without one, or once the caller has hung up. */
  next(timeoutMs: number): Promise<OutcomeNotice | undefined>;
  /** Ends the wait. Must always be called in the end. */
  end(): void;
}

type Listener = (notice: OutcomeNotice) => void;

/**
 * Receives outcomes on a Redis channel of this process' own. A notice can be lost, because Redis restarts or the connection
 * breaks. So a caller that has waited in vain asks the ledger.
 */
export class OutcomeWaiters {
  readonly #redis: Redis;
  readonly #channel = `adrelay:outcomes:${randomUUID()}`;
  readonly #listeners = new Map<AdResponseId, Set<Listener>>();
  readonly #stopped = new AbortController();
  readonly #canPublish: () => boolean;
  #starting: Promise<unknown> | undefined;
  #isRefused = false;

  /** `canPublish`: whether Redis permits what workers need to send outcomes, as far as this process knows. */
  constructor(redis: Redis, canPublish: () => boolean = () => true) {
    this.#redis = redis;
    this.#canPublish = canPublish;
  }

  /** Subscribes; ioredis does so again after each reconnection. Resolves once Redis has confirmed it. */
  async start(): Promise<void> {
    if (!this.#stopped.signal.aborted) {
      this.#starting ??= this.#redis.on("message", this.#hear).subscribe(this.#channel);
      await this.#starting.catch((error: unknown) => {
        this.#isRefused = true;
        throw error;
      });
    }
  }

  /** Ends all waits now. The acknowledgments are stored, and the callers' answers say so. Later waits end immediately. */
  stop(): void {
    this.#stopped.abort();
    this.#redis.off("message", this.#hear);
    if (this.#starting !== undefined) {
      // Not awaited: Redis may be away. The subscription ends with the connection at the latest.
      this.#redis.unsubscribe(this.#channel).catch(() => {});
    }
  }

  get isStopped(): boolean {
    return this.#stopped.signal.aborted;
  }

  /** Begins to listen for one ad response. To be called before its job is queued, so that no notice is missed. */
  wait(id: AdResponseId, caller: Caller): OutcomeWait {
    const heard: OutcomeNotice[] = [];
    let wake = () => {};
    const listener: Listener = (notice) => {
      heard.push(notice);
      wake();
    };
    const listeners = this.#listeners.get(id) ?? new Set();
    this.#listeners.set(id, listeners.add(listener));
    const stopped = this.#stopped.signal;
    const wakeNow = () => wake();
    stopped.addEventListener("abort", wakeNow, { once: true });
    caller.onGone = wakeNow;
    return {
      channel: this.#channel,
      isDeaf: this.#isRefused || !this.#canPublish(),
      next: async (timeoutMs) => {
        if (heard.length === 0 && timeoutMs > 0 && !stopped.aborted && !caller.isGone) {
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, timeoutMs);
            wake = () => {
              clearTimeout(timer);
              resolve();
            };
          });
        }
        return heard.shift();
      },
      end: () => {
        stopped.removeEventListener("abort", wakeNow);
        caller.onGone = undefined;
        this.#forget(id, listener);
      },
    };
  }

  #forget(id: AdResponseId, listener: Listener): void {
    const listeners = this.#listeners.get(id);
    listeners?.delete(listener);
    if (listeners?.size === 0) {
      this.#listeners.delete(id);
    }
  }

  readonly #hear = (_channel: string, message: string): void => {
    const notice = parseNotice(message);
    if (notice !== undefined) {
      for (const listener of this.#listeners.get(notice.adResponseId) ?? []) {
        listener(notice);
      }
    }
  };
}

function parseNotice(message: string): OutcomeNotice | undefined {
  try {
    return outcomeNoticeSchema.safeParse(JSON.parse(message)).data;
  } catch {
    return undefined;
  }
}
