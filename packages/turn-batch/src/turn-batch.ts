/**
 * No call takes more items, and so many leave before their turn ends: Redis is at work on them while this process is at the
 * rest. More of them would make the two wait for each other by turns.
 */
const ITEMS_MAX = 12;
/** What is held goes once it was asked for this long ago: a slow disk or a far Redis is no reason to send little. */
const HELD_MAX_MS = 2;

export interface TurnBatchOptions<Item> {
  /** No call takes more once its items are this large together, in whatever `sizeOf` counts. */
  readonly sizeOf: (item: Item) => number;
  readonly sizeMax: number;
  /**
   * Beside so many calls under way no other one is sent: what is asked is held until one of them is back, for 2 ms at most
   * (docs/adr/0027). Calls of a batch that holds may be overtaken by others'.
   */
  readonly callsMax: number;
}

interface Waiting<Item, Reply> {
  readonly item: Item;
  readonly size: number;
  readonly askedAtMs: number;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Collects what is asked in one turn of the event loop and asks it at once when the turn ends: under load a call costs more
 * than what it does. Unless calls are limited, nothing waits longer than the turn, and none for the reply to those before it.
 *
 * `run` answers for each item in their order; an Error among the replies is that item's alone. If `run` rejects, all of
 * its items do.
 */
export class TurnBatch<Item, Reply> {
  readonly #run: (items: readonly Item[]) => Promise<readonly (Reply | Error)[]>;
  readonly #options: TurnBatchOptions<Item>;
  /** In the order of asking. */
  #waiting: Waiting<Item, Reply>[] = [];
  #size = 0;
  #underWay = 0;
  #isTurnWatched = false;
  #overdue: NodeJS.Timeout | undefined;

  constructor(
    run: (items: readonly Item[]) => Promise<readonly (Reply | Error)[]>,
    options: Partial<TurnBatchOptions<Item>> = {},
  ) {
    this.#run = run;
    const unlimited = Number.POSITIVE_INFINITY;
    this.#options = {
      sizeOf: () => 0,
      sizeMax: unlimited,
      callsMax: unlimited,
      ...options,
    };
  }

  ask(item: Item): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const size = this.#options.sizeOf(item);
      this.#waiting.push({ item, size, askedAtMs: performance.now(), resolve, reject });
      this.#size += size;
      this.#sendEarly();
    });
  }

  /** Before the turn ends, if there is enough for a call. */
  #sendEarly(): void {
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
    while (this.#waiting.length > 0 && this.#underWay < this.#options.callsMax) {
      this.#sendFirst();
    }
  }

  #watchHeld(): void {
    const [first] = this.#waiting;
    if (first !== undefined && this.#overdue === undefined) {
      // After a long turn it is overdue already.
      const delayMs = Math.max(0, Math.ceil(first.askedAtMs + HELD_MAX_MS - performance.now()));
      this.#overdue = setTimeout(() => this.#sendOverdue(), delayMs);
    }
  }

  #sendOverdue(): void {
    this.#overdue = undefined;
    const dueSinceMs = performance.now() - HELD_MAX_MS;
    while ((this.#waiting[0]?.askedAtMs ?? Number.POSITIVE_INFINITY) <= dueSinceMs) {
      this.#sendFirst();
    }
    this.#watchHeld();
  }

  #sendFirst(): void {
    // Never rejects: each item hears of it.
    void this.#answer(this.#takeCall());
  }

  /** The first of those that wait, as many as a call takes. */
  #takeCall(): readonly Waiting<Item, Reply>[] {
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

  async #answer(asked: readonly Waiting<Item, Reply>[]): Promise<void> {
    try {
      const replies = await this.#call(asked.map(({ item }) => item));
      for (const [at, { resolve, reject }] of asked.entries()) {
        const reply = replies[at];
        if (reply === undefined || reply instanceof Error) {
          reject(reply ?? new TypeError("a batch came back with a reply missing"));
        } else {
          resolve(reply);
        }
      }
    } catch (error) {
      for (const { reject } of asked) {
        reject(error);
      }
    }
  }

  async #call(items: readonly Item[]): Promise<readonly (Reply | Error)[]> {
    this.#underWay += 1;
    try {
      return await this.#run(items);
    } finally {
      this.#underWay -= 1;
      // What has been held goes now if it is enough for a call, else with what the replies lead to in this turn.
      this.#sendEarly();
    }
  }
}
