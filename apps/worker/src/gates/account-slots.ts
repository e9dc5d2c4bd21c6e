/** Gives the slot back; a second call does nothing. */
export type FreeSlot = () => void;

/** How long an attempt waits for a slot before it goes back to the queue: quick providers free one by then. */
const SLOT_WAIT_MS = 250;
/** Who comes within this time counts as coming now: about the time until the gates are looked at again. */
const SOON_MS = 100;
/** Most attempts that a slot is expected to take within that time. */
const SOON_PER_SLOT_MAX = 5;
/** How much the slot freed last counts in the mean time that slots are held. */
const LATEST_SHARE = 0.2;

/**
 * Bounds how many attempts run at once at one provider account, so that a slow one can't take every place
 * of a worker. Whoever finds no slot waits a moment, if one will be free by then as slots go; once that was in
 * vain, nobody waits until a slot is freed.
 */
export class AccountSlots {
  readonly #limit: number;
  readonly #now: () => number;
  readonly #waiting = new Set<(free: FreeSlot | undefined) => void>();
  #taken = 0;
  #isCongested = false;
  #meanHeldMs = 0;

  /** `now`: a clock in milliseconds that never goes back. */
  constructor(limit: number, now: () => number = () => performance.now()) {
    this.#limit = limit;
    this.#now = now;
  }

  /** How many more attempts could begin now or soon: a quick provider must not stand idle until the next look. */
  get room(): number {
    const perSlot = this.#meanHeldMs === 0 ? 1 : Math.min(SOON_MS / this.#meanHeldMs, SOON_PER_SLOT_MAX);
    const soon = Math.floor(this.#limit * Math.max(perSlot, 1));
    return Math.max(soon - this.#taken - this.#waiting.size, 0);
  }

  /** A slot, or undefined if there is none for the time being. */
  async take(): Promise<FreeSlot | undefined> {
    if (this.#taken < this.#limit) {
      return this.#give();
    }
    // All that wait hold a place of the worker: behind a slow provider's backlog others would wait for them.
    const expectedMs = ((this.#waiting.size + 1) * this.#meanHeldMs) / this.#limit;
    if (this.#isCongested || expectedMs > SLOT_WAIT_MS) {
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
    const takenAtMs = this.#now();
    let isFreed = false;
    return () => {
      if (!isFreed) {
        isFreed = true;
        this.#taken -= 1;
        this.#isCongested = false;
        this.#meanHeldMs += LATEST_SHARE * (this.#now() - takenAtMs - this.#meanHeldMs);
        const [next] = this.#waiting;
        next?.(this.#give());
      }
    };
  }
}
