/**
 * Long-lived parts of a process: how they are started and stopped, and the two kinds that repeat something.
 *
 * A long-lived part has `start()` and `stop()`. Stop may be called more than once, before start and during a start. Once it
 * has resolved, nothing of the part runs. A part that was stopped stays stopped.
 */
import type { Logger } from "pino";
import { withDeadline } from "./deadline.ts";

/** A service can't start, for a reason that an operator can fix. The message is complete; no stack is shown. */
export class CannotStartError extends Error {
  override readonly name: string = "CannotStartError";
}

/** Stops one part. The signal fires when the part's time is up; nobody waits for the part after that. */
export type StopStep = (signal: AbortSignal) => Promise<void> | void;

/** A part with the contract above, such as a listener or a loop. */
export interface LongLivedPart {
  start(): Promise<void> | void;
  stop: StopStep;
}

/** The share of the remaining time that a part may use, unless it is the last part. */
const STEP_SHARE_MAX = 0.8;

/**
 * Stops the parts of a process. Each part is registered where it is made. A stop runs the steps in reverse order of
 * their registration, with one deadline for all. A step that throws or exceeds its time is logged, and the next step
 * runs anyway. A second stop joins the first.
 */
export class Lifecycle {
  readonly #log: Logger;
  readonly #steps: { name: string; stop: StopStep }[] = [];
  #isAnnounced = false;
  #stopping: Promise<void> | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** True from the announcement of a stop on. Readiness fails from then on. */
  get isStopping(): boolean {
    return this.#isAnnounced;
  }

  /** Registers a part and starts it, unless the stop has begun. Rejects if the part can't start. */
  async start(name: string, part: LongLivedPart): Promise<void> {
    if (!this.isStopping) {
      this.onStop(name, (signal) => part.stop(signal));
      await part.start();
    }
  }

  /** Registers how to stop a part that runs now. */
  onStop(name: string, stop: StopStep): void {
    this.#steps.push({ name, stop });
  }

  /** Registers a part that is stopped after all others, for example one by which the others are observed. */
  onStopLast(name: string, stop: StopStep): void {
    this.#steps.unshift({ name, stop });
  }

  /** Announces a stop that comes later. Until then all parts run on. */
  announceStop(): void {
    this.#isAnnounced = true;
  }

  /** Stops every part within `timeoutMs`. Never rejects. */
  stop(timeoutMs: number): Promise<void> {
    this.announceStop();
    this.#stopping ??= this.#stopAll(performance.now() + timeoutMs);
    return this.#stopping;
  }

  async #stopAll(deadlineMs: number): Promise<void> {
    while (this.#steps.length > 0) {
      const step = this.#steps.pop();
      if (step !== undefined) {
        const leftMs = deadlineMs - performance.now();
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

/**
 * Runs a task repeatedly, one run at a time, with a pause after each run. The pause is `intervalMs`, unless a run
 * returns a number: then that is the next pause in milliseconds.
 */
export class Periodic {
  // `unknown`, so that a task which returns nothing or some other value needs no wrapper.
  readonly #task: () => Promise<unknown>;
  readonly #intervalMs: number;
  readonly #onError: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  /** The latest run; undefined before the start. */
  #run: Promise<void> | undefined;
  #isStopped = false;

  constructor(task: () => Promise<unknown>, intervalMs: number, onError: (error: unknown) => void) {
    this.#task = task;
    this.#intervalMs = intervalMs;
    this.#onError = onError;
  }

  /** Starts the first run immediately. A second start does nothing. */
  start(): void {
    if (this.#run === undefined && !this.#isStopped) {
      this.#run = this.#runOnce();
    }
  }

  /** Starts no further run. Resolves once the current run has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#run;
  }

  async #runOnce(): Promise<void> {
    let pauseMs = this.#intervalMs;
    try {
      const result = await this.#task();
      pauseMs = typeof result === "number" ? result : this.#intervalMs;
    } catch (error) {
      this.#onError(error);
    }
    if (!this.#isStopped) {
      this.#timer = setTimeout(() => {
        this.#run = this.#runOnce();
      }, pauseMs);
    }
  }
}

/** By its heartbeat other processes see that this process runs. */
export interface Heartbeat {
  beat(): Promise<void>;
  /** Announces that the process ends in an orderly way. */
  leave(): Promise<void>;
}

const HEARTBEAT_INTERVAL_MS = 1000;
const FIRST_BEAT_TIMEOUT_MS = 1000;

/**
 * Beats from its start to its stop, once a second by default, and leaves at the stop. The start waits a moment for the
 * first beat. A beat that fails is not logged here: Redis' connection and the heartbeat log that.
 */
export class PeriodicHeartbeat {
  readonly #heartbeat: Heartbeat;
  readonly #beats: Periodic;
  readonly #first = Promise.withResolvers<void>();
  #stopping: Promise<void> | undefined;

  constructor(heartbeat: Heartbeat, intervalMs = HEARTBEAT_INTERVAL_MS) {
    this.#heartbeat = heartbeat;
    this.#beats = new Periodic(
      () => heartbeat.beat().finally(() => this.#first.resolve()),
      intervalMs,
      () => {},
    );
  }

  async start(): Promise<void> {
    this.#beats.start();
    await withDeadline(this.#first.promise, FIRST_BEAT_TIMEOUT_MS);
  }

  stop(): Promise<void> {
    this.#first.resolve();
    this.#stopping ??= this.#leave();
    return this.#stopping;
  }

  async #leave(): Promise<void> {
    await this.#beats.stop();
    await this.#heartbeat.leave();
  }
}
