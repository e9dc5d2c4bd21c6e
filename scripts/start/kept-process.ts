/** A process of the local stack that is kept running: if it ends, it is started again. */

/** A process that was launched. */
export interface RunningProcess {
  readonly pid: number;
  /** Resolves once it has ended, to how it ended. */
  readonly ended: Promise<string>;
  /** May be called again, and after the process has ended. */
  stop(): Promise<void>;
}

export interface KeptOptions {
  readonly name: string;
  readonly say: (line: string) => void;
  /** Called each time the process was launched again: it has another pid. */
  readonly onRestarted: () => void;
  /** The signal aborts once the process is to be stopped. A launch that takes long heeds it. */
  readonly launch: (signal: AbortSignal) => Promise<RunningProcess>;
}

const RESTART_DELAY_MS = 500;
const RESTART_DELAY_MAX_MS = 10_000;
/** If a part ends after at least this time, the delay begins at its lowest value again. */
const STABLE_MS = 30_000;

/** Launches a process, and again each time it ends, with a growing delay, until it is stopped. */
export class KeptProcess {
  readonly name: string;
  readonly #options: KeptOptions;
  /** The latest launch, and what it has launched. */
  #launching: Promise<RunningProcess> | undefined;
  #running: RunningProcess | undefined;
  #restart: NodeJS.Timeout | undefined;
  #delayMs = RESTART_DELAY_MS;
  #starting: Promise<void> | undefined;
  readonly #stopping = new AbortController();

  constructor(options: KeptOptions) {
    this.#options = options;
    this.name = options.name;
  }

  /** 0 before the first launch. */
  get pid(): number {
    return this.#running?.pid ?? 0;
  }

  /** Rejects if the first launch does. Does nothing after a stop. */
  start(): Promise<void> {
    this.#starting ??= this.#isStopped ? Promise.resolve() : this.#launch();
    return this.#starting;
  }

  /** Sends SIGTERM, later SIGKILL. Resolves once the process has ended. It is not launched again. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    clearTimeout(this.#restart);
    // A launch that is under way must not leave a process behind.
    await this.#launching?.catch(() => {});
    await this.#running?.stop();
  }

  get #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #launch(): Promise<void> {
    this.#launching = this.#options.launch(this.#stopping.signal);
    this.#running = await this.#launching;
    void this.#watch(this.#running);
  }

  async #watch({ ended }: RunningProcess): Promise<void> {
    const startedAtMs = performance.now();
    const how = await ended;
    if (!this.#isStopped) {
      this.#delayMs = performance.now() - startedAtMs > STABLE_MS ? RESTART_DELAY_MS : this.#delayMs;
      this.#options.say(`${this.name} ended (${how}); starting it again`);
      this.#launchLater();
    }
  }

  #launchLater(): void {
    this.#restart = setTimeout(() => void this.#launchAgain(), this.#delayMs);
    this.#delayMs = Math.min(this.#delayMs * 2, RESTART_DELAY_MAX_MS);
  }

  async #launchAgain(): Promise<void> {
    const { say } = this.#options;
    try {
      await this.#launch();
    } catch (error) {
      if (!this.#isStopped) {
        say(messageOf(error));
        this.#launchLater();
      }
      return;
    }
    if (!this.#isStopped) {
      this.#tellRestarted();
      say(`${this.name} runs again (pid ${this.pid})`);
    }
  }

  /** The process runs, even if this can't be told, as on a full disk. */
  #tellRestarted(): void {
    try {
      this.#options.onRestarted();
    } catch (error) {
      this.#options.say(messageOf(error));
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
