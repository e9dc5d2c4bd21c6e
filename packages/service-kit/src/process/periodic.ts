/** Runs a task again and again with a pause in between; one run at a time. Stop is idempotent. */
export class Periodic {
  readonly #task: () => Promise<void>;
  readonly #intervalMs: number;
  readonly #onError: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(task: () => Promise<void>, intervalMs: number, onError: (error: unknown) => void) {
    this.#task = task;
    this.#intervalMs = intervalMs;
    this.#onError = onError;
  }

  start(): void {
    if (!this.#isStopped) {
      this.#running = this.#task()
        .catch(this.#onError)
        .finally(() => this.#schedule());
    }
  }

  /** Resolves once a run that was going on has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  #schedule(): void {
    if (!this.#isStopped) {
      this.#timer = setTimeout(() => this.start(), this.#intervalMs);
    }
  }
}
