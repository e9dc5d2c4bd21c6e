/**
 * Most items that go out at once. A full batch leaves before its turn ends, so that Redis is at work on it while this
 * process is at the rest; larger ones make the two wait for each other by turns.
 */
const BATCH_MAX = 12;

/** A batch goes out early once its items are this large together, in whatever `sizeOf` counts. */
export interface SizeBound<Item> {
  readonly sizeOf: (item: Item) => number;
  readonly sizeMax: number;
}

interface Waiting<Item, Reply> {
  readonly item: Item;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Collects what is asked in one turn of the event loop and asks it at once when the turn ends: under load a command
 * costs more than what it does. Nothing waits longer than the turn, and none for the reply to those before it.
 *
 * `run` answers for each item in their order; an Error among the replies is that item's alone. If `run` rejects, all of
 * its items do.
 */
export class TurnBatch<Item, Reply> {
  readonly #run: (items: readonly Item[]) => Promise<readonly (Reply | Error)[]>;
  readonly #bound: SizeBound<Item> | undefined;
  #waiting: Waiting<Item, Reply>[] = [];
  #size = 0;

  constructor(run: (items: readonly Item[]) => Promise<readonly (Reply | Error)[]>, bound?: SizeBound<Item>) {
    this.#run = run;
    this.#bound = bound;
  }

  ask(item: Item): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) {
        setImmediate(() => this.#flush());
      }
      this.#waiting.push({ item, resolve, reject });
      if (this.#isFull(item)) {
        this.#flush();
      }
    });
  }

  #isFull(added: Item): boolean {
    this.#size += this.#bound?.sizeOf(added) ?? 0;
    return (
      this.#waiting.length >= BATCH_MAX || this.#size >= (this.#bound?.sizeMax ?? Number.POSITIVE_INFINITY)
    );
  }

  #flush(): void {
    const asked = this.#waiting;
    this.#waiting = [];
    this.#size = 0;
    if (asked.length > 0) {
      // Never rejects: each item hears of it.
      void this.#answer(asked);
    }
  }

  async #answer(asked: readonly Waiting<Item, Reply>[]): Promise<void> {
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
    }
  }
}
