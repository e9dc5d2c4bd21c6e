/** One process of a run. Faults kill, freeze and restart it; an end without a fault is reported. */
import { fileURLToPath } from "node:url";
import { type AppName, type AppProcess, AppStartError, startApp } from "@adrelay/testkit";

export interface ChaosAppOptions {
  /** How problems name it. */
  readonly id: string;
  readonly app: AppName;
  readonly env: Readonly<Record<string, string>>;
  readonly onLogText: (line: string) => void;
  /** Gets a failed start, an end without a request to end, and a stop that was late or failed. */
  readonly onProblem: (what: string) => void;
  readonly shutdownTimeoutMs: number;
}

/** What is otherwise than usual until the next start. */
export interface StartChange {
  /** How far the clock is off. */
  readonly skewMs?: number;
  readonly env?: Readonly<Record<string, string>>;
}

const PRELOAD = fileURLToPath(new URL("./shifted-clock.ts", import.meta.url));
/** How much longer than its own limit a stop may take: the last log lines are flushed, and the machine is busy. */
const STOP_GRACE_MS = 2000;

export class ChaosApp {
  readonly #options: ChaosAppOptions;
  #app: AppProcess | undefined;
  #isEndWanted = false;

  constructor(options: ChaosAppOptions) {
    this.#options = options;
  }

  /**
   * Starts or restarts the app on its ports. A start must succeed in every state of Redis. A failed one is reported and
   * repeated once, so that the run can go on.
   */
  async start(change: StartChange = {}): Promise<void> {
    try {
      await this.#startOnce(change);
    } catch (error) {
      if (!(error instanceof AppStartError)) {
        throw error;
      }
      this.#options.onProblem(error.message);
      await this.#startOnce(change);
    }
  }

  async #startOnce({ skewMs = 0, env: changed }: StartChange): Promise<void> {
    const { id, app: name, onLogText, onProblem } = this.#options;
    const env = { ...this.#options.env, ...changed };
    const nodeArgs = skewMs === 0 ? [] : ["--import", PRELOAD];
    const skewed = skewMs === 0 ? env : { ...env, CHAOS_CLOCK_SKEW_MS: String(skewMs) };
    const app = await startApp(name, skewed, { nodeArgs, onLogText });
    this.#app = app;
    this.#isEndWanted = false;
    void app.exited.then((exit) => {
      if (!this.#isEndWanted) {
        onProblem(`${id} ended on its own with ${exit}: ${app.stderr()}`);
      } else if (app.stderr() !== "") {
        onProblem(`${id} wrote to its standard error: ${app.stderr()}`);
      }
    });
  }

  /** Ends the process with SIGKILL. */
  async crash(): Promise<void> {
    this.#isEndWanted = true;
    this.#app?.kill("SIGKILL");
    await this.#app?.exited;
  }

  freeze(): void {
    this.#app?.kill("SIGSTOP");
  }

  /** Sends SIGHUP, which must not end the process. */
  hangUp(): void {
    this.#app?.kill("SIGHUP");
  }

  thaw(): void {
    this.#app?.kill("SIGCONT");
  }

  /** Sends SIGTERM. The process must end in time with exit code 0. */
  async stop(): Promise<void> {
    const { id, onProblem, shutdownTimeoutMs } = this.#options;
    this.#isEndWanted = true;
    const startedAtMs = performance.now();
    const exit = await this.#app?.stop();
    const tookMs = Math.round(performance.now() - startedAtMs);
    if (exit !== 0 || tookMs > shutdownTimeoutMs + STOP_GRACE_MS) {
      onProblem(`${id} ended with ${exit} ${tookMs} ms after SIGTERM`);
    }
  }
}
