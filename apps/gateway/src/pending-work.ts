/** Work that goes on after its request was answered; a stop waits for it within its deadline. */
export class PendingWork {
  readonly #running = new Set<Promise<void>>();
  readonly #onError: (error: unknown) => void;

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  add(work: Promise<void>): void {
    const tracked = work.catch(this.#onError).finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
  }

  /** Resolves once nothing is running any more. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) {
      await Promise.all(this.#running);
    }
  }
}
