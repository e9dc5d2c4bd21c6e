import type { Logger } from "pino";

/** Stops one part. The signal fires when the part's time is up; what it does after that nobody waits for. */
export type StopStep = (signal: AbortSignal) => Promise<void> | void;

/** The most of the time that is left which one part may take, unless it is the last. */
const STEP_SHARE_MAX = 0.8;

/**
 * Where each long-lived part is registered, next to the place that made it. Stopping runs the steps in
 * reverse order under one deadline for all; a second stop joins the first, and stopping before anything
 * was registered is fine. A step that throws or overruns is logged and the next one runs all the same.
 */
export class Lifecycle {
  readonly #log: Logger;
  readonly #steps: { name: string; stop: StopStep }[] = [];
  #stopping: Promise<void> | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** True from the first stop on: readiness fails from then. */
  get isStopping(): boolean {
    return this.#stopping !== undefined;
  }

  /** Registers the stop of a part that now runs. */
  onStop(name: string, stop: StopStep): void {
    this.#steps.push({ name, stop });
  }

  /** As `onStop`, but stopped after everything else: what others are watched by, for example. */
  onStopLast(name: string, stop: StopStep): void {
    this.#steps.unshift({ name, stop });
  }

  /** Stops every part within `timeoutMs`; never rejects. */
  stop(timeoutMs: number): Promise<void> {
    this.#stopping ??= this.#stopAll(performance.now() + timeoutMs);
    return this.#stopping;
  }

  async #stopAll(deadlineMs: number): Promise<void> {
    while (this.#steps.length > 0) {
      const step = this.#steps.pop();
      if (step !== undefined) {
        const leftMs = deadlineMs - performance.now();
        // A part that hangs leaves the others a share of the time.
        await this.#stopOne(step, this.#steps.length === 0 ? leftMs : leftMs * STEP_SHARE_MAX);
      }
    }
  }

  async #stopOne({ name, stop }: { name: string; stop: StopStep }, leftMs: number): Promise<void> {
    const timer = new AbortController();
    const timeout = setTimeout(() => timer.abort(), Math.max(leftMs, 0));
    const overrun = new Promise<"overrun">((resolve) => {
      timer.signal.addEventListener("abort", () => resolve("overrun"), { once: true });
    });
    try {
      const outcome = await Promise.race([Promise.resolve(stop(timer.signal)), overrun]);
      if (outcome === "overrun") {
        this.#log.warn({ event: "stop_overrun", part: name });
      }
    } catch (err) {
      this.#log.warn({ event: "stop_failed", part: name, err });
    } finally {
      clearTimeout(timeout);
    }
  }
}
