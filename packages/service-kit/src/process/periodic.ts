/**
 * Runs a task again and again with a pause in between; one run at a time. The pause is the interval, unless a
 * run says how long the next one is. Stop is idempotent.
 */
export class Periodic {
  // A task that answers nothing is as good as one that answers undefined.
  readonly #task: () => Promise<unknown>;
  readonly #intervalMs: number;
  readonly #onError: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(task: () => Promise<unknown>, intervalMs: number, onError: (error: unknown) => void) {
    this.#task = task;
    this.#intervalMs = intervalMs;
    this.#onError = onError;
  }

  start(): void {
    if (!this.#isStopped) {
      this.#running = this.#runOnce();
    }
  }

  /** Resolves once a run that was going on has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  async #runOnce(): Promise<void> {
    let pauseMs = this.#intervalMs;
    try {
      const answered = await this.#task();
      pauseMs = typeof answered === "number" ? answered : this.#intervalMs;
    } catch (error) {
      this.#onError(error);
    }
    if (!this.#isStopped) {
      this.#timer = setTimeout(() => this.start(), pauseMs);
    }
  }
}
