/** Waits for providers' replies, and work that goes on after its request was answered. */
import type { RawReply } from "@adrelay/provider";
import { startDeadline } from "@adrelay/service-kit";

/** A caller that waits for an answer and may hang up. An AbortSignal for each would cost more than the rest of the wait. */
export interface Caller {
  readonly isGone: boolean;
  /** Called when the caller hangs up. */
  onGone: (() => void) | undefined;
}

/** Returned in place of a reply if the wait ended before it came. */
export const GIVEN_UP = Symbol("given up");

interface Wait {
  readonly giveUp: () => void;
  /** Its index among the running waits. */
  at: number;
}

/** The waits for providers' replies. All of them end at the drain signal, for which there is one listener. */
export class Waits {
  readonly #drainSignal: AbortSignal;
  /** An array, because what has left a Set that is always in use stays in V8's heap for long (docs/adr/0031). */
  readonly #running: Wait[] = [];

  constructor(drainSignal: AbortSignal) {
    this.#drainSignal = drainSignal;
    drainSignal.addEventListener("abort", () => {
      for (const { giveUp } of [...this.#running]) {
        giveUp();
      }
    });
  }

  /** Waits for a reply until the time is up, the caller hangs up or the drain signal fires. */
  untilGivenUp(
    reply: Promise<RawReply>,
    timeoutMs: number,
    caller: Caller,
  ): Promise<RawReply | typeof GIVEN_UP> {
    return new Promise((resolve, reject) => {
      const end = () => {
        takeOff();
        this.#remove(wait);
        caller.onGone = undefined;
      };
      const settle = (outcome: RawReply | typeof GIVEN_UP) => {
        end();
        resolve(outcome);
      };
      const giveUp = () => settle(GIVEN_UP);
      const takeOff = startDeadline(timeoutMs, giveUp);
      const wait: Wait = { giveUp, at: this.#running.length };
      this.#running.push(wait);
      caller.onGone = giveUp;
      if (this.#drainSignal.aborted || caller.isGone) {
        giveUp();
      }
      reply.then(settle, (error) => {
        end();
        reject(error);
      });
    });
  }

  /** The last wait moves to the free index. May be called again at any time. */
  #remove(wait: Wait): void {
    if (this.#running[wait.at] !== wait) {
      return;
    }
    const last = this.#running.pop();
    if (last !== undefined && last !== wait) {
      last.at = wait.at;
      this.#running[wait.at] = last;
    }
  }
}

/** Work that goes on after its request was answered. A stop waits for it, within its deadline. */
export class PendingWork {
  readonly #running = new Set<Promise<void>>();
  readonly #onError: (error: unknown) => void;

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  add(work: Promise<void>): void {
    const tracked = work.catch(this.#onError).finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
  }

  /** Resolves once nothing is running any more. Nothing is cancelled. */
  async stop(): Promise<void> {
    while (this.#running.size > 0) {
      await Promise.all(this.#running);
    }
  }
}
