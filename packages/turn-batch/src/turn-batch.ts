/** Most items that go out at once: one script that runs for all of them must not hold Redis up. */
const BATCH_MAX = 64;

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
  #waiting: Waiting<Item, Reply>[] = [];

  constructor(run: (items: readonly Item[]) => Promise<readonly (Reply | Error)[]>) {
    this.#run = run;
  }

  ask(item: Item): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (this.#waiting.length === 1) {
        setImmediate(() => this.#flush());
      } else if (this.#waiting.length === BATCH_MAX) {
        this.#flush();
      }
    });
  }

  #flush(): void {
    const asked = this.#waiting;
    this.#waiting = [];
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
