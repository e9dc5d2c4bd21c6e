/**
 * The time of a run's plan. It stands still while a process starts, which takes a busy machine many seconds: otherwise
 * all that is planned for this time would meet nothing that runs.
 */
import { pause } from "@adrelay/testkit";

const LOOK_MS = 20;

export class TrafficClock {
  #lastMs = performance.now();
  #elapsedMs = 0;
  #starting = 0;

  /** Since the clock was made, without the time when it stood still. */
  nowMs(): number {
    const nowMs = performance.now();
    if (this.#starting === 0) {
      this.#elapsedMs += nowMs - this.#lastMs;
    }
    this.#lastMs = nowMs;
    return this.#elapsedMs;
  }

  /** Resolves at a time of the plan. */
  async until(atMs: number): Promise<void> {
    for (let leftMs = atMs - this.nowMs(); leftMs > 0; leftMs = atMs - this.nowMs()) {
      await pause(Math.min(leftMs, LOOK_MS));
    }
  }

  /** The clock stands still until the work is done. */
  async during(work: () => Promise<void>): Promise<void> {
    this.nowMs();
    this.#starting += 1;
    try {
      await work();
    } finally {
      this.nowMs();
      this.#starting -= 1;
    }
  }
}
