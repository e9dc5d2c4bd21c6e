import type { PublisherId } from "@adrelay/contract";
import type { CircuitRoom } from "@adrelay/store";

/** Frees a slot; a second call does nothing. `overloaded`: the attempt failed as it would if the provider had too much to do. */
export type FreeSlot = (result?: "succeeded" | "overloaded") => void;

/** How long an attempt waits for a slot before it is parked. A quick provider frees one by then. */
const SLOT_WAIT_MS = 250;
/** About the time until parked acknowledgments are released again. */
const SOON_MS = 100;
/** How many attempts a slot is expected to serve within that time, at most. */
const SOON_PER_SLOT_MAX = 5;
/** How much the slot that was freed last counts in the mean time for which slots are held. */
const LATEST_SHARE = 0.2;
/** The number of slots is changed by failures and by successes, within these bounds, so that attempts go on as fast as works. */
const FAILED_FACTOR = 0.8;
const SUCCEEDED_SLOTS = 0.5;
const SLOTS_MIN_SHARE = 0.1;
/** One for a publisher whose attempts hang, one for the others. */
const SLOTS_MIN = 2;

/** An attempt that waits for a slot. */
interface Waiting {
  readonly publisher: PublisherId;
  answer(free: FreeSlot | undefined): void;
}

export interface LimiterOptions {
  /** Most attempts at the same time. */
  readonly limit: number;
  /** How many publishers share the account. */
  readonly publishers: number;
  /** A clock in milliseconds that never goes back. */
  now?(): number;
}

/**
 * Bounds how many attempts run at the same time at one provider account, so that a slow account can't hold all jobs of
 * the worker.
 *
 * 1. If all slots are busy, an attempt waits up to 250 ms, but only if a slot is expected to be free by then. After a wait
 *    in vain, no other attempt waits until a slot is freed.
 * 2. Publishers share the slots, and one share is kept for a publisher that has no attempt yet. So the slow attempts of one
 *    never keep another's waiting.
 * 3. A provider that fails under load gets fewer attempts at a time, by additive increase and multiplicative decrease.
 */
export class ConcurrencyLimiter {
  readonly #limit: number;
  readonly #publishers: number;
  readonly #now: () => number;
  readonly #waiting = new Set<Waiting>();
  readonly #inUse = new Map<PublisherId, number>();
  #total = 0;
  #slots: number;
  #cutAtMs = Number.NEGATIVE_INFINITY;
  #isCongested = false;
  #meanHeldMs = 0;

  constructor({ limit, publishers, now = () => performance.now() }: LimiterOptions) {
    this.#limit = limit;
    this.#publishers = publishers;
    this.#slots = limit;
    this.#now = now;
  }

  /** How many attempts may run at the same time now. */
  get slots(): number {
    return Math.floor(this.#slots);
  }

  /** How many more attempts could begin now or soon: a quick provider must not be idle until the next release. */
  get room(): CircuitRoom {
    const perSlot = this.#meanHeldMs === 0 ? 1 : Math.min(SOON_MS / this.#meanHeldMs, SOON_PER_SLOT_MAX);
    const soon = (slots: number) => Math.floor(slots * Math.max(perSlot, 1));
    return {
      total: Math.max(soon(this.slots) - this.#total - this.#waiting.size, 0),
      of: (publisher) => Math.max(soon(this.#shareOf(publisher)) - this.#usedBy(publisher), 0),
    };
  }

  /** Waits for a slot as described above; undefined if none is free in time. */
  async acquire(publisher: PublisherId): Promise<FreeSlot | undefined> {
    if (this.#hasSlotFor(publisher)) {
      return this.#give(publisher);
    }
    // Each waiting attempt holds one of the worker's jobs. If many waited for a slow provider, other providers would
    // wait too.
    const expectedMs = ((this.#waiting.size + 1) * this.#meanHeldMs) / this.slots;
    if (this.#isCongested || expectedMs > SLOT_WAIT_MS) {
      return undefined;
    }
    return new Promise((resolve) => {
      const waiting: Waiting = {
        publisher,
        answer: (free) => {
          clearTimeout(timer);
          this.#waiting.delete(waiting);
          resolve(free);
        },
      };
      const timer = setTimeout(() => {
        this.#isCongested = true;
        waiting.answer(undefined);
      }, SLOT_WAIT_MS);
      this.#waiting.add(waiting);
    });
  }

  #usedBy(publisher: PublisherId): number {
    return this.#inUse.get(publisher) ?? 0;
  }

  #shareOf(publisher: PublisherId): number {
    const others = this.#inUse.size - (this.#inUse.has(publisher) ? 1 : 0);
    const shares = Math.min(others + 2, this.#publishers);
    return Math.max(Math.floor(this.slots / shares), 1);
  }

  #hasSlotFor(publisher: PublisherId): boolean {
    return this.#total < this.slots && this.#usedBy(publisher) < this.#shareOf(publisher);
  }

  #give(publisher: PublisherId): FreeSlot {
    this.#total += 1;
    this.#inUse.set(publisher, this.#usedBy(publisher) + 1);
    const acquiredAtMs = this.#now();
    let isFreed = false;
    return (result) => {
      if (!isFreed) {
        isFreed = true;
        this.#take(publisher);
        this.#adapt(result, acquiredAtMs);
        this.#isCongested = false;
        this.#meanHeldMs += LATEST_SHARE * (this.#now() - acquiredAtMs - this.#meanHeldMs);
        const next = [...this.#waiting].find((waiting) => this.#hasSlotFor(waiting.publisher));
        next?.answer(this.#give(next.publisher));
      }
    };
  }

  #take(publisher: PublisherId): void {
    this.#total -= 1;
    const left = this.#usedBy(publisher) - 1;
    if (left > 0) {
      this.#inUse.set(publisher, left);
    } else {
      this.#inUse.delete(publisher);
    }
  }

  #adapt(result: "succeeded" | "overloaded" | undefined, acquiredAtMs: number): void {
    if (result === "succeeded") {
      this.#slots = Math.min(this.#slots + SUCCEEDED_SLOTS, this.#limit);
    } else if (result === "overloaded" && acquiredAtMs >= this.#cutAtMs) {
      // Attempts that had begun before the last cut say nothing about the present number.
      this.#cutAtMs = this.#now();
      const least = Math.min(Math.max(this.#limit * SLOTS_MIN_SHARE, SLOTS_MIN), this.#limit);
      this.#slots = Math.max(this.#slots * FAILED_FACTOR, least);
    }
  }
}

/** How many jobs one process holds at the same time, at most. */
const JOBS_MAX = 1000;

/**
 * How many jobs a worker may hold at the same time: as many as all its provider accounts may have under way. If publishers
 * share an account, it may hold as many more, because jobs of one publisher may wait for a slot while another has some. It is
 * bounded, but never so small that one account could hold all jobs.
 */
export function countJobs(
  attemptsMax: number,
  accounts: readonly { readonly publishers: readonly PublisherId[] }[],
): number {
  const isShared = accounts.some(({ publishers }) => publishers.length > 1);
  const groups = accounts.length + (isShared ? 1 : 0);
  return Math.min(attemptsMax * groups, Math.max(JOBS_MAX, 2 * attemptsMax));
}
