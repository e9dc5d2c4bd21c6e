/** One gateway or worker of a run: a process that is hurt on purpose, and watched for dying by itself. */
import { fileURLToPath } from "node:url";
import { type AppProcess, AppStartError, startApp } from "@adrelay/testkit";
import type { AppId } from "./fault.ts";

export interface ChaosAppOptions {
  readonly id: AppId;
  readonly env: Readonly<Record<string, string>>;
  readonly onLogText: (line: string) => void;
  /** Told of an end that nobody asked for. */
  readonly onDeath: (what: string) => void;
  readonly shutdownTimeoutMs: number;
}

const PRELOAD = fileURLToPath(new URL("./shifted-clock.ts", import.meta.url));
/** Beyond its own limit a stop may take this long: the last lines are flushed, and the machine is loaded. */
const STOP_GRACE_MS = 2000;

export class ChaosApp {
  readonly #options: ChaosAppOptions;
  #app: AppProcess | undefined;
  #isEndWanted = false;

  constructor(options: ChaosAppOptions) {
    this.#options = options;
  }

  /**
   * Starts it (again) on its ports, with its clock off by `skewMs`. A start must work whatever state Redis is
   * in; one that doesn't is told, and made once more, so that the run goes on.
   */
  async start(skewMs = 0): Promise<void> {
    try {
      await this.#startOnce(skewMs);
    } catch (error) {
      if (!(error instanceof AppStartError)) {
        throw error;
      }
      this.#options.onDeath(error.message);
      await this.#startOnce(skewMs);
    }
  }

  async #startOnce(skewMs: number): Promise<void> {
    const { id, env, onLogText, onDeath } = this.#options;
    const nodeArgs = skewMs === 0 ? [] : ["--import", PRELOAD];
    const skewed = skewMs === 0 ? env : { ...env, CHAOS_CLOCK_SKEW_MS: String(skewMs) };
    const app = await startApp(id.startsWith("gateway") ? "gateway" : "worker", skewed, {
      nodeArgs,
      onLogText,
    });
    this.#app = app;
    this.#isEndWanted = false;
    void app.exited.then((exit) => {
      if (!this.#isEndWanted) {
        onDeath(`${id} ended by itself with ${exit}: ${app.stderr()}`);
      } else if (app.stderr() !== "") {
        onDeath(`${id} wrote to its standard error: ${app.stderr()}`);
      }
    });
  }

  /** kill -9. */
  async crash(): Promise<void> {
    this.#isEndWanted = true;
    this.#app?.kill("SIGKILL");
    await this.#app?.exited;
  }

  freeze(): void {
    this.#app?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#app?.kill("SIGCONT");
  }

  /** SIGTERM: it must end with 0 in time. */
  async stop(): Promise<void> {
    const { id, onDeath, shutdownTimeoutMs } = this.#options;
    this.#isEndWanted = true;
    const startedAtMs = performance.now();
    const exit = await this.#app?.stop();
    const tookMs = Math.round(performance.now() - startedAtMs);
    if (exit !== 0 || tookMs > shutdownTimeoutMs + STOP_GRACE_MS) {
      onDeath(`${id} ended with ${exit} ${tookMs} ms after SIGTERM`);
    }
  }
}
