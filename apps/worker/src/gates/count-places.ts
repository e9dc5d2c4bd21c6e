/** Enough for each provider to have its share; a bound on what one process holds at once. */
const PLACES_MAX = 1000;

/**
 * How many acknowledgments a worker may hold at once: what all its provider accounts may have under way, within
 * the bound, but never so few that one account could take every place.
 */
export function countPlaces(attemptsMax: number, accounts: number): number {
  const wanted = attemptsMax * accounts;
  return Math.min(wanted, Math.max(PLACES_MAX, 2 * attemptsMax));
}
