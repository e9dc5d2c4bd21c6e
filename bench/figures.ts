import type { BenchPart } from "./options.mjs";

/** One line of the table: the values of each round, and the values that they are compared with. */
export interface Figure {
  readonly part: BenchPart;
  readonly what: string;
  readonly unit: string;
  /** The values of Adrelay, round by round. */
  readonly ours: readonly number[];
  /** The other side, measured in the same rounds. */
  readonly against?: { readonly name: string; readonly values: readonly number[] };
  readonly promise?: Promised;
}

/** A promise about a figure's median, or about the median of its ratios. */
export interface Promised {
  readonly of: "value" | "ratio";
  readonly bound: { readonly kind: "at_least" | "at_most"; readonly value: number };
}

/** The ratio of each round. In one round both sides had the machine in the same state. */
export function ratiosOf({ ours, against }: Figure): readonly number[] | undefined {
  return against && ours.map((value, round) => value / (against.values[round] ?? Number.NaN));
}

/** The median of the rounds' ratios. */
export function ratioOf(figure: Figure): number | undefined {
  const ratios = ratiosOf(figure);
  return ratios && median(ratios);
}

/** Whether the promise holds; undefined for a figure without a promise. */
export function holds(figure: Figure): boolean | undefined {
  const { promise } = figure;
  if (promise === undefined) {
    return undefined;
  }
  const value = promise.of === "ratio" ? (ratioOf(figure) ?? Number.NaN) : median(figure.ours);
  return promise.bound.kind === "at_least" ? value >= promise.bound.value : value <= promise.bound.value;
}

export function atLeast(of: Promised["of"], value: number): Promised {
  return { of, bound: { kind: "at_least", value } };
}

export function atMost(of: Promised["of"], value: number): Promised {
  return { of, bound: { kind: "at_most", value } };
}

/** The value below which this share of the sorted values lies; 0 if there are no values. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? 0;
}

export interface Spread {
  readonly lowest: number;
  readonly highest: number;
}

/** The spread of at least two values. Undefined for fewer values, or if one is NaN. */
export function spreadOf(values: readonly number[]): Spread | undefined {
  return values.length < 2 || values.some(Number.isNaN)
    ? undefined
    : { lowest: Math.min(...values), highest: Math.max(...values) };
}

/** The middle value, or the mean of the two middle values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const low = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
  const high = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  return (low + high) / 2;
}
