/**
 * A clock that stands still while this process does: stopped by a signal, frozen with its container, or with a blocked event
 * loop. After such a pause the timers run before the sockets are read. So a limit by the wall clock would pass although the
 * answer has arrived and only waits to be read.
 */

const TICK_MS = 50;
/** A longer time between two turns of the event loop counts as this long: the process stood still for the rest of it. */
const TURN_MAX_MS = 100;

export class RunningClock {
  readonly #ticks: NodeJS.Timeout;
  #seenAtMs = performance.now();
  #ranMs = 0;

  constructor() {
    this.#ticks = setInterval(() => this.nowMs(), TICK_MS).unref();
  }

  /** For how long this process has run, in milliseconds since the clock was made. */
  nowMs(): number {
    const nowMs = performance.now();
    this.#ranMs += Math.min(nowMs - this.#seenAtMs, TURN_MAX_MS);
    this.#seenAtMs = nowMs;
    return this.#ranMs;
  }

  /**
   * Calls `onOverdue` once this process has run for `timeoutMs`. Before that, the sockets are read once more.
   *
   * @returns cancels it; may be called at any time, more than once
   */
  startLimit(timeoutMs: number, onOverdue: () => void): () => void {
    const endMs = this.nowMs() + timeoutMs;
    let lastTurn: NodeJS.Immediate | undefined;
    const check = () => {
      const leftMs = endMs - this.nowMs();
      if (leftMs >= 1) {
        timer = setTimeout(check, leftMs);
      } else {
        lastTurn = setImmediate(onOverdue);
      }
    };
    let timer = setTimeout(check, timeoutMs);
    return () => {
      clearTimeout(timer);
      clearImmediate(lastTurn);
    };
  }

  /** The clock no longer notices pauses. */
  stop(): void {
    clearInterval(this.#ticks);
  }
}
