/**
 * So many items leave before their turn ends, so that Redis is at work on them while this process is at the rest; more of
 * them would make the two wait for each other by turns.
 */
const EARLY_ITEMS = 12;
/** Beside so many calls under way a batch that may be held sends no other one. */
const UNDER_WAY_MAX = 2;
/** But no call has more items than this, and none is held longer before it is sent, counted from the end of its turn. */
const HELD_ITEMS_MAX = 32;
const HELD_MAX_MS = 50;

export interface TurnBatchOptions<Item> {
  /** A batch goes out early once its items are this large together, in whatever `sizeOf` counts. */
  readonly sizeOf: (item: Item) => number;
  readonly sizeMax: number;
  /**
   * Whether what is asked while Redis is busy with two calls may be held, and go together once one of them is back
   * (docs/adr/0026). Calls of such a batch may be overtaken by others'.
   */
  readonly mayHold: boolean;
}

interface Waiting<Item, Reply> {
  readonly item: Item;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Collects what is asked in one turn of the event loop and asks it at once when the turn ends: under load a call costs more
 * than what it does. Unless it may be held, nothing waits longer than the turn, and none for the reply to those before it.
 *
 * `run` answers for each item in their order; an Error among the replies is that item's alone. If `run` rejects, all of
 * its items do.
 */
export class TurnBatch<Item, Reply> {
  readonly #run: (items: readonly Item[]) => Promise<readonly (Reply | Error)[]>;
  readonly #options: TurnBatchOptions<Item>;
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
    this.#options = { sizeOf: () => 0, sizeMax: Number.POSITIVE_INFINITY, mayHold: false, ...options };
  }

  ask(item: Item): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#size += this.#options.sizeOf(item);
      if (this.#isFull()) {
        this.#flush();
      } else {
        this.#watchTurn();
      }
    });
  }

  #isFull(): boolean {
    const itemsMax = this.#isHeld() ? HELD_ITEMS_MAX : EARLY_ITEMS;
    return this.#waiting.length >= itemsMax || this.#size >= this.#options.sizeMax;
  }

  #isHeld(): boolean {
    return this.#options.mayHold && this.#underWay >= UNDER_WAY_MAX;
  }

  #watchTurn(): void {
    if (!this.#isTurnWatched) {
      this.#isTurnWatched = true;
      setImmediate(() => this.#endTurn());
    }
  }

  #endTurn(): void {
    this.#isTurnWatched = false;
    if (!this.#isHeld()) {
      this.#flush();
    } else if (this.#waiting.length > 0) {
      this.#overdue ??= setTimeout(() => this.#flush(), HELD_MAX_MS);
    }
  }

  #flush(): void {
    clearTimeout(this.#overdue);
    this.#overdue = undefined;
    const asked = this.#waiting;
    this.#waiting = [];
    this.#size = 0;
    if (asked.length > 0) {
      // Never rejects: each item hears of it.
      void this.#answer(asked);
    }
  }

  async #answer(asked: readonly Waiting<Item, Reply>[]): Promise<void> {
    this.#underWay += 1;
    try {
      const replies = await this.#run(asked.map(({ item }) => item));
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
    } finally {
      this.#underWay -= 1;
      // What the replies lead to in this turn goes with what has waited for them.
      this.#watchTurn();
    }
  }
}
