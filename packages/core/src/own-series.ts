/**
 * Bounds the series of a metric's label. The values that were used within the last day have their own series, up to a
 * limit. All others share the value `other`.
 */

/** The value that all share that have no series of their own. */
export const OTHER_LABEL = "other";

const UNUSED_MAX_MS = 86_400_000;

export class OwnSeries {
  readonly #valuesMax: number;
  readonly #usedAtMs = new Map<string, number>();

  /** @param valuesMax how many values have their own series */
  constructor(valuesMax: number) {
    this.#valuesMax = valuesMax;
  }

  /** The values that have their own series. */
  get values(): Iterable<string> {
    return this.#usedAtMs.keys();
  }

  has(value: string): boolean {
    return this.#usedAtMs.has(value);
  }

  /** Uses a value. Returns it if it has its own series, otherwise `other`. */
  use(value: string, nowMs: number): string {
    const isOwn = this.#usedAtMs.has(value) || this.#usedAtMs.size < this.#valuesMax;
    if (!isOwn || value === OTHER_LABEL) {
      return OTHER_LABEL;
    }
    this.#usedAtMs.set(value, nowMs);
    return value;
  }

  /** Takes its own series from a value. */
  drop(value: string): void {
    this.#usedAtMs.delete(value);
  }

  /** Takes their own series from the values that nobody used for a day. Returns these values. */
  expire(nowMs: number): string[] {
    const unused = [...this.#usedAtMs].filter(([, usedAtMs]) => nowMs - usedAtMs > UNUSED_MAX_MS);
    for (const [value] of unused) {
      this.#usedAtMs.delete(value);
    }
    return unused.map(([value]) => value);
  }
}
