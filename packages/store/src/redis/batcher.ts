/**
 * No call takes more items than this. Redis then works on one call while this process works on another; larger calls
 * make the two wait for each other.
 */
const ITEMS_MAX = 12;
/** Items are held for at most this long. Where the disk or the way to Redis is slow, calls are sent by this clock. */
const HELD_MAX_MS = 2;

export interface BatcherOptions<Item> {
  /** A call takes no more items once their sizes, in any unit, sum up to `sizeMax`. */
  readonly sizeOf: (item: Item) => number;
  readonly sizeMax: number;
  /**
   * How many calls may be under way. Further items are held until a call returns, for at most 2 ms. A batcher with this
   * bound may be overtaken by calls of other batchers.
   */
  readonly callsMax: number;
}

interface Submitted<Item, Reply> {
  readonly item: Item;
  readonly size: number;
  readonly submittedAtMs: number;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Collects the items that are submitted in one turn of the event loop and sends them in one call when the turn ends.
 * Under load a call costs more than the work that it carries. Without `callsMax`, no item waits longer than its turn.
 *
 * `run` replies to each item, in the order of submission. An Error among the replies rejects its item only. If `run`
 * rejects, all items of that call reject.
 */
export class Batcher<Item, Reply> {
  readonly #run: (items: readonly Item[]) => Promise<readonly (Reply | Error)[]>;
  readonly #options: BatcherOptions<Item>;
  /** In the order of submission. */
  #waiting: Submitted<Item, Reply>[] = [];
  #size = 0;
  #callsUnderWay = 0;
  #isTurnWatched = false;
  #holdTimer: NodeJS.Timeout | undefined;

  constructor(
    run: (items: readonly Item[]) => Promise<readonly (Reply | Error)[]>,
    options: Partial<BatcherOptions<Item>> = {},
  ) {
    this.#run = run;
    const unlimited = Number.POSITIVE_INFINITY;
    this.#options = { sizeOf: () => 0, sizeMax: unlimited, callsMax: unlimited, ...options };
  }

  /** Adds an item to the next call; resolves with its reply. */
  submit(item: Item): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const size = this.#options.sizeOf(item);
      this.#waiting.push({ item, size, submittedAtMs: performance.now(), resolve, reject });
      this.#size += size;
      this.#sendFullCalls();
    });
  }

  /** Sends before the turn ends if there is enough for a call. */
  #sendFullCalls(): void {
    if (this.#waiting.length >= ITEMS_MAX || this.#size >= this.#options.sizeMax) {
      this.#sendAllowed();
    }
    if (this.#waiting.length > 0 && !this.#isTurnWatched) {
      this.#isTurnWatched = true;
      setImmediate(() => this.#endTurn());
    }
  }

  #endTurn(): void {
    this.#isTurnWatched = false;
    this.#sendAllowed();
    this.#watchHeld();
  }

  #sendAllowed(): void {
    while (this.#waiting.length > 0 && this.#callsUnderWay < this.#options.callsMax) {
      this.#sendOne();
    }
  }

  #watchHeld(): void {
    const [first] = this.#waiting;
    if (first !== undefined && this.#holdTimer === undefined) {
      // After a long turn the item is overdue already.
      const delayMs = Math.max(0, Math.ceil(first.submittedAtMs + HELD_MAX_MS - performance.now()));
      this.#holdTimer = setTimeout(() => this.#sendOverdue(), delayMs);
    }
  }

  #sendOverdue(): void {
    this.#holdTimer = undefined;
    const overdueSinceMs = performance.now() - HELD_MAX_MS;
    while ((this.#waiting[0]?.submittedAtMs ?? Number.POSITIVE_INFINITY) <= overdueSinceMs) {
      this.#sendOne();
    }
    this.#watchHeld();
  }

  #sendOne(): void {
    // This promise never rejects: each item gets the error.
    void this.#settle(this.#takeForOneCall());
  }

  #takeForOneCall(): readonly Submitted<Item, Reply>[] {
    const { sizeMax } = this.#options;
    let count = 0;
    let size = 0;
    for (const waiting of this.#waiting) {
      if (count === ITEMS_MAX || size >= sizeMax) {
        break;
      }
      count += 1;
      size += waiting.size;
    }
    this.#size -= size;
    return this.#waiting.splice(0, count);
  }

  async #settle(submitted: readonly Submitted<Item, Reply>[]): Promise<void> {
    try {
      const replies = await this.#call(submitted.map(({ item }) => item));
      for (const [at, { resolve, reject }] of submitted.entries()) {
        const reply = replies[at];
        if (reply === undefined || reply instanceof Error) {
          reject(reply ?? new TypeError("a batch came back with a reply missing"));
        } else {
          resolve(reply);
        }
      }
    } catch (error) {
      for (const { reject } of submitted) {
        reject(error);
      }
    }
  }

  async #call(items: readonly Item[]): Promise<readonly (Reply | Error)[]> {
    this.#callsUnderWay += 1;
    try {
      return await this.#run(items);
    } finally {
      this.#callsUnderWay -= 1;
      // Held items leave now if they fill a call, else together with what the replies lead to in this turn.
      this.#sendFullCalls();
    }
  }
}
