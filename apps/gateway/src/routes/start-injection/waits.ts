import type { RawReply } from "@adrelay/provider";
import { startDeadline } from "@adrelay/service-kit";

/** Who waits for an answer, and may hang up. A signal for each would cost more than the rest of the wait. */
export interface Caller {
  readonly isGone: boolean;
  /** Called when the caller hangs up; one listener is enough. */
  onGone: (() => void) | undefined;
}

/** Stands for a reply that nobody waits for any more. */
export const GIVEN_UP = Symbol("given up");

interface Wait {
  readonly giveUp: () => void;
  /** Where it stands among the running ones. */
  at: number;
}

/** The waits for a reply. They all end when the process is in a hurry, which is listened for once for all of them. */
export class Waits {
  readonly #hurry: AbortSignal;
  /** An array: what has left a Set that is always in use stays in V8's heap for long (docs/adr/0024). */
  readonly #running: Wait[] = [];

  constructor(hurry: AbortSignal) {
    this.#hurry = hurry;
    hurry.addEventListener("abort", () => {
      for (const { giveUp } of [...this.#running]) {
        giveUp();
      }
    });
  }

  /** Waits for a reply until the time is up, the caller hangs up or the process is in a hurry. */
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
      if (this.#hurry.aborted || caller.isGone) {
        giveUp();
      }
      reply.then(settle, (error) => {
        end();
        reject(error);
      });
    });
  }

  /** Its place goes to the last one. To be called again at any time. */
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
