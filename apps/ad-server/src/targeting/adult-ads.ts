import type { Ad } from "../catalog/ad.ts";

export const ADULT_AGE = 18;

/**
 * Words of a category's id that make its ads ones for adults, also where the catalogue forgot to say so. The
 * shop's law decides in the end: `adult` and `age_min` are for what isn't listed.
 */
const ADULT_WORDS: ReadonlySet<string> = new Set(
  [
    "adult alcohol beer betting bingo bookmaker bookmakers brandy cannabis casino casinos cbd champagne",
    "cigar cigarettes cigars cocktails dating erotic escort gambling gin hookup lingerie liquor lottery",
    "marijuana nicotine poker porn rum sex sexual slots spirits sportsbook tequila tobacco vape vapes vaping",
    "vodka whiskey whisky wine wines winery",
  ].flatMap((line) => line.split(" ")),
);

/** Whether an ad is only for people known to be 18 or older. */
export function isForAdults({ adult, category, targeting }: Ad): boolean {
  return (
    adult === true ||
    (targeting.age_min ?? 0) >= ADULT_AGE ||
    category.split("-").some((word) => ADULT_WORDS.has(word))
  );
}
