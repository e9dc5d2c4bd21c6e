/**
 * Calls to providers whose callers have their answers already. They share a bounded number of places: a provider that hangs must
 * not pile them up, and no publisher can take the places of others.
 */
import type { PublisherId } from "@adrelay/contract";
import type { RunningCall } from "@adrelay/provider";

type LateCall = Pick<RunningCall, "giveUp">;

export class LateCalls {
  readonly #max: number;
  /** Of each publisher that has some, in the order in which they became late. */
  readonly #calls = new Map<PublisherId, Set<LateCall>>();
  #size = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Adds a call. If there are too many then, the oldest one of the publisher that has most is given up. */
  add(publisher: PublisherId, call: LateCall): void {
    const own = this.#calls.get(publisher) ?? new Set();
    this.#calls.set(publisher, own.add(call));
    this.#size += 1;
    if (this.#size > this.#max) {
      this.#giveUpOne();
    }
  }

  /** The call has ended. May be called more than once, and after it was given up. */
  remove(publisher: PublisherId, call: LateCall): void {
    const own = this.#calls.get(publisher);
    if (own?.delete(call) !== true) {
      return;
    }
    this.#size -= 1;
    if (own.size === 0) {
      this.#calls.delete(publisher);
    }
  }

  #giveUpOne(): void {
    const [most] = [...this.#calls].toSorted(([, one], [, other]) => other.size - one.size);
    const [publisher, [oldest] = []] = most ?? [];
    if (publisher !== undefined && oldest !== undefined) {
      this.remove(publisher, oldest);
      oldest.giveUp();
    }
  }
}
