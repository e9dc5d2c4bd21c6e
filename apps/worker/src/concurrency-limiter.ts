/** Frees a slot; a second call does nothing. */
export type FreeSlot = () => void;

/** How long an attempt waits for a slot before it is parked. A quick provider frees one by then. */
const SLOT_WAIT_MS = 250;
/** About the time until parked acknowledgments are released again. */
const SOON_MS = 100;
/** How many attempts a slot is expected to serve within that time, at most. */
const SOON_PER_SLOT_MAX = 5;
/** How much the slot that was freed last counts in the mean time for which slots are held. */
const LATEST_SHARE = 0.2;

/**
 * Bounds how many attempts run at the same time at one provider account, so that a slow account can't hold all jobs of
 * the worker. If all slots are busy, an attempt waits up to 250 ms, but only if a slot is expected to be free by then.
 * After a wait in vain, no other attempt waits until a slot is freed.
 */
export class ConcurrencyLimiter {
  readonly #limit: number;
  readonly #now: () => number;
  readonly #waiting = new Set<(free: FreeSlot | undefined) => void>();
  #inUse = 0;
  #isCongested = false;
  #meanHeldMs = 0;

  /** `now`: a clock in milliseconds that never goes back. */
  constructor(limit: number, now: () => number = () => performance.now()) {
    this.#limit = limit;
    this.#now = now;
  }

  /** How many more attempts could begin now or soon: a quick provider must not be idle until the next release. */
  get room(): number {
    const perSlot = this.#meanHeldMs === 0 ? 1 : Math.min(SOON_MS / this.#meanHeldMs, SOON_PER_SLOT_MAX);
    const soon = Math.floor(this.#limit * Math.max(perSlot, 1));
    return Math.max(soon - this.#inUse - this.#waiting.size, 0);
  }

  /** Waits for a slot as described above; undefined if none is free in time. */
  async acquire(): Promise<FreeSlot | undefined> {
    if (this.#inUse < this.#limit) {
      return this.#give();
    }
    // Each waiting attempt holds one of the worker's jobs. If many waited for a slow provider, other providers would
    // wait too.
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
    this.#inUse += 1;
    const acquiredAtMs = this.#now();
    let isFreed = false;
    return () => {
      if (!isFreed) {
        isFreed = true;
        this.#inUse -= 1;
        this.#isCongested = false;
        this.#meanHeldMs += LATEST_SHARE * (this.#now() - acquiredAtMs - this.#meanHeldMs);
        const [next] = this.#waiting;
        next?.(this.#give());
      }
    };
  }
}

/** How many jobs one process holds at the same time, at most. */
const JOBS_MAX = 1000;

/**
 * How many jobs a worker may hold at the same time: as many as all its provider accounts may have under way, within a bound,
 * but never so few that one account could hold all of them.
 */
export function countJobs(attemptsMax: number, accounts: number): number {
  return Math.min(attemptsMax * accounts, Math.max(JOBS_MAX, 2 * attemptsMax));
}
