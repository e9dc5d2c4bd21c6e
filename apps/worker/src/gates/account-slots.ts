/** Gives the slot back; a second call does nothing. */
export type FreeSlot = () => void;

/** How long an attempt waits for a slot before it goes back to the queue: quick providers free one by then. */
const SLOT_WAIT_MS = 250;

/**
 * Bounds how many attempts run at once at one provider account, so that a slow one can't take every place
 * of a worker. Whoever finds no slot waits a moment; once that was in vain, nobody waits until a slot is freed.
 */
export class AccountSlots {
  readonly #limit: number;
  readonly #waiting = new Set<(free: FreeSlot | undefined) => void>();
  #taken = 0;
  #isCongested = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** How many attempts could begin at once. */
  get room(): number {
    return Math.max(this.#limit - this.#taken - this.#waiting.size, 0);
  }

  /** A slot, or undefined if there is none for the time being. */
  async take(): Promise<FreeSlot | undefined> {
    if (this.#taken < this.#limit) {
      return this.#give();
    }
    if (this.#isCongested) {
      return undefined;
    }
    return new Promise((resolve) => {
      const answer = (free: FreeSlot | undefined) => {
        clearTimeout(timer);
        this.#waiting.delete(answer);
        resolve(free);
      };
      const timer = setTimeout(() => {
        this.#isCongested = true;
        answer(undefined);
      }, SLOT_WAIT_MS);
      this.#waiting.add(answer);
    });
  }

  #give(): FreeSlot {
    this.#taken += 1;
    let isFreed = false;
    return () => {
      if (!isFreed) {
        isFreed = true;
        this.#taken -= 1;
        this.#isCongested = false;
        const [next] = this.#waiting;
        next?.(this.#give());
      }
    };
  }
}
