import { randomUUID } from "node:crypto";
import { type AdResponseId, type OutcomeNotice, outcomeNoticeSchema } from "@adrelay/contract";
import type { Redis } from "ioredis";

/** A caller's wait for the outcome of its acknowledgment. */
export interface OutcomeWait {
  /** Channel on which a worker sends the outcome. */
  readonly channel: string;
  /** The next notice, or undefined once `timeoutMs` has passed without one. */
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

  constructor(redis: Redis) {
    this.#redis = redis;
    redis.on("message", (_channel: string, message: string) => this.#hear(message));
  }

  /** Subscribes; ioredis does so again after each reconnection. */
  async start(): Promise<void> {
    await this.#redis.subscribe(this.#channel);
  }

  /** Ends all waits now. The acknowledgments are stored, and the callers' answers say so. */
  stop(): void {
    this.#stopped.abort();
  }

  /** Begins to listen for one ad response. To be called before its job is queued, so that no notice is missed. */
  wait(id: AdResponseId): OutcomeWait {
    const heard: OutcomeNotice[] = [];
    let wake = () => {};
    const listener: Listener = (notice) => {
      heard.push(notice);
      wake();
    };
    const listeners = this.#listeners.get(id) ?? new Set();
    this.#listeners.set(id, listeners.add(listener));
    const stopped = this.#stopped.signal;
    const onStopped = () => wake();
    stopped.addEventListener("abort", onStopped, { once: true });
    return {
      channel: this.#channel,
      next: async (timeoutMs) => {
        if (heard.length === 0 && timeoutMs > 0 && !stopped.aborted) {
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
        stopped.removeEventListener("abort", onStopped);
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

  #hear(message: string): void {
    const notice = parseNotice(message);
    if (notice !== undefined) {
      for (const listener of this.#listeners.get(notice.adResponseId) ?? []) {
        listener(notice);
      }
    }
  }
}

function parseNotice(message: string): OutcomeNotice | undefined {
  try {
    return outcomeNoticeSchema.safeParse(JSON.parse(message)).data;
  } catch {
    return undefined;
  }
}
