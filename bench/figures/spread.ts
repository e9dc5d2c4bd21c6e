/** The value below which this share of sorted values lies; 0 of none. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? 0;
}

export interface Spread {
  readonly lowest: number;
  readonly highest: number;
}

/** Of two values at the least, each of them a number; undefined of others. */
export function spreadOf(values: readonly number[]): Spread | undefined {
  return values.length < 2 || values.some(Number.isNaN)
    ? undefined
    : { lowest: Math.min(...values), highest: Math.max(...values) };
}

/** The middle value, or the mean of the two middle ones. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const low = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
  const high = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  return (low + high) / 2;
}
