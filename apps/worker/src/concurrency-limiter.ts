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
/** A publisher whose attempts hold a slot no longer than this, in the mean, may use one slot more than there are. */
const QUICK_HELD_MS = 1000;

/** An attempt that waits for a slot. */
interface Waiting {
  readonly user: SlotUser;
  answer(free: FreeSlot | undefined): void;
}

/** A publisher's use of the slots. */
interface SlotUser {
  inUse: number;
  waiting: number;
  /** A wait was in vain, and no slot was freed since. */
  isCongested: boolean;
  /** For how long its attempts hold a slot, in the mean. */
  meanHeldMs: number;
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
 * 1. If there is no slot, an attempt waits up to 250 ms, but only if its publisher's attempts are expected to free one by
 *    then. After a wait in vain, no other attempt of this publisher waits until it has freed a slot.
 * 2. Publishers share the slots, and one share is kept for a publisher that has no attempt yet. So the slow attempts of one
 *    never keep another's waiting. If the slots have become so few that the slow publishers have them all, one that is
 *    quick and has no attempt gets one more.
 * 3. A provider that fails under load gets fewer attempts at a time, by additive increase and multiplicative decrease.
 */
export class ConcurrencyLimiter {
  readonly #limit: number;
  #publishers: number;
  readonly #now: () => number;
  readonly #waiting = new Set<Waiting>();
  readonly #users = new Map<PublisherId, SlotUser>();
  #total = 0;
  #usersAtWork = 0;
  #slots: number;
  #cutAtMs = Number.NEGATIVE_INFINITY;

  constructor({ limit, publishers, now = () => performance.now() }: LimiterOptions) {
    this.#limit = limit;
    this.#publishers = publishers;
    this.#slots = limit;
    this.#now = now;
  }

  /** Sets how many publishers share the account from now on. */
  set publishers(publishers: number) {
    this.#publishers = publishers;
  }

  /** How many attempts may run at the same time now. */
  get slots(): number {
    return Math.floor(this.#slots);
  }

  /** How many more attempts could begin now or soon: a quick provider must not be idle until the next release. */
  get room(): CircuitRoom {
    const taken = this.#total + this.#waiting.size;
    return {
      total: Math.max(this.slots * SOON_PER_SLOT_MAX - taken, 0),
      of: (publisher) => this.#roomOf(this.#userOf(publisher)),
    };
  }

  /** Waits for a slot as described above; undefined if none is free in time. */
  async acquire(publisher: PublisherId): Promise<FreeSlot | undefined> {
    const user = this.#userOf(publisher);
    if (this.#hasSlotFor(user)) {
      return this.#give(user);
    }
    // Each waiting attempt holds one of the worker's jobs. If many waited for a slow provider, other providers would
    // wait too.
    const expectedMs = ((user.waiting + 1) * user.meanHeldMs) / this.#shareOf(user);
    return user.isCongested || expectedMs > SLOT_WAIT_MS ? undefined : this.#wait(user);
  }

  #wait(user: SlotUser): Promise<FreeSlot | undefined> {
    return new Promise((resolve) => {
      const waiting: Waiting = {
        user,
        answer: (free) => {
          clearTimeout(timer);
          this.#waiting.delete(waiting);
          user.waiting -= 1;
          resolve(free);
        },
      };
      const timer = setTimeout(() => {
        user.isCongested = true;
        waiting.answer(undefined);
      }, SLOT_WAIT_MS);
      this.#waiting.add(waiting);
      user.waiting += 1;
    });
  }

  #userOf(publisher: PublisherId): SlotUser {
    const user = this.#users.get(publisher) ?? { inUse: 0, waiting: 0, isCongested: false, meanHeldMs: 0 };
    this.#users.set(publisher, user);
    return user;
  }

  #shareOf(user: SlotUser): number {
    const others = this.#usersAtWork - (user.inUse > 0 ? 1 : 0);
    const shares = Math.min(others + 2, this.#publishers);
    return Math.max(Math.floor(this.slots / shares), 1);
  }

  #roomOf(user: SlotUser): number {
    const perSlot = user.meanHeldMs === 0 ? 1 : Math.min(SOON_MS / user.meanHeldMs, SOON_PER_SLOT_MAX);
    const soon = Math.floor(this.#shareOf(user) * Math.max(perSlot, 1));
    return Math.max(soon - user.inUse - user.waiting, 0);
  }

  #hasSlotFor(user: SlotUser): boolean {
    const isLeftOut = user.inUse === 0 && user.meanHeldMs <= QUICK_HELD_MS;
    const slots = Math.min(this.slots + (isLeftOut ? 1 : 0), this.#limit);
    return this.#total < slots && user.inUse < this.#shareOf(user);
  }

  #give(user: SlotUser): FreeSlot {
    this.#count(user, 1);
    const acquiredAtMs = this.#now();
    let isFreed = false;
    return (result) => {
      if (!isFreed) {
        isFreed = true;
        this.#count(user, -1);
        user.isCongested = false;
        user.meanHeldMs += LATEST_SHARE * (this.#now() - acquiredAtMs - user.meanHeldMs);
        this.#adapt(result, acquiredAtMs);
        const next = [...this.#waiting].find((waiting) => this.#hasSlotFor(waiting.user));
        next?.answer(this.#give(next.user));
      }
    };
  }

  #count(user: SlotUser, change: 1 | -1): void {
    const isChanged = user.inUse === 0 || user.inUse + change === 0;
    this.#total += change;
    user.inUse += change;
    this.#usersAtWork += isChanged ? change : 0;
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
