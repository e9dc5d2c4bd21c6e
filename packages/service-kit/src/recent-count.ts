/** How often something happened lately. It holds one number for each minute, however often that is. */

const MINUTE_MS = 60_000;

export class RecentCount {
  readonly #minutes: number;
  /** By the minute's number. At most as many as are asked for, and one more. */
  readonly #counts = new Map<number, number>();

  /** @param minutes how far back it looks, besides the minute that runs */
  constructor(minutes: number) {
    this.#minutes = minutes;
  }

  /** @param nowMs by a clock that never goes back */
  add(nowMs: number): void {
    const minute = this.#forget(nowMs);
    this.#counts.set(minute, (this.#counts.get(minute) ?? 0) + 1);
  }

  sum(nowMs: number): number {
    this.#forget(nowMs);
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  #forget(nowMs: number): number {
    const minute = Math.floor(nowMs / MINUTE_MS);
    for (const old of this.#counts.keys()) {
      if (old < minute - this.#minutes) {
        this.#counts.delete(old);
      }
    }
    return minute;
  }
}
