const INTERVAL_MS = 1000;

/**
 * Reports events of which there may be thousands for one reason, at most once a second. None goes uncounted, if `flush` is called
 * before the process exits: what waits for its second would end with it.
 */
export class OnceASecond<T> {
  readonly #report: (latest: T, count: number) => void;
  /** The latest one that isn't reported yet, and how many there are. */
  #waiting: { readonly latest: T; readonly count: number } | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(report: (latest: T, count: number) => void) {
    this.#report = report;
  }

  /** Reports it now, or within a second together with others. */
  add(latest: T): void {
    this.#waiting = { latest, count: (this.#waiting?.count ?? 0) + 1 };
    if (this.#timer === undefined) {
      this.flush();
    }
  }

  /** Reports now what waits. May be called at any time. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#waiting !== undefined) {
      const { latest, count } = this.#waiting;
      this.#waiting = undefined;
      this.#timer = setTimeout(() => this.flush(), INTERVAL_MS).unref();
      this.#report(latest, count);
    }
  }
}
