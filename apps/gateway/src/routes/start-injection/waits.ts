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

/** The waits for a reply. They all end when the process is in a hurry, which is listened for once for all of them. */
export class Waits {
  readonly #hurry: AbortSignal;
  readonly #running = new Set<() => void>();

  constructor(hurry: AbortSignal) {
    this.#hurry = hurry;
    hurry.addEventListener("abort", () => {
      for (const giveUp of this.#running) {
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
      const settle = (outcome: RawReply | typeof GIVEN_UP) => {
        takeOff();
        this.#running.delete(giveUp);
        caller.onGone = undefined;
        resolve(outcome);
      };
      const giveUp = () => settle(GIVEN_UP);
      const takeOff = startDeadline(timeoutMs, giveUp);
      this.#running.add(giveUp);
      caller.onGone = giveUp;
      if (this.#hurry.aborted || caller.isGone) {
        giveUp();
      }
      reply.then(settle, reject);
    });
  }
}
