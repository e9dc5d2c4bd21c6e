/** How many of a number of things have a property. */
export interface Share {
  readonly count: number;
  readonly of: number;
}

export function shareOf<T>(items: readonly T[], hasProperty: (item: T) => boolean): Share {
  return { count: items.filter(hasProperty).length, of: items.length };
}

/** From 0 to 1; NaN if it is a share of nothing. */
export function ratioOf({ count, of }: Share): number {
  return count / of;
}

/** Such as `97.5 % of 40`. */
export function describeShare(share: Share): string {
  return share.of === 0 ? "-" : `${(100 * ratioOf(share)).toFixed(1)} % of ${share.of}`;
}
