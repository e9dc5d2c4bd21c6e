import type { Ad } from "../catalog/ad.ts";

export const ADULT_AGE = 18;

/**
 * Words of a category's id that make its ads ones for adults, also where the catalogue forgot to say so; those
 * that have a plural count in it too. The shop's law decides in the end: `adult` and `age_min` are for what isn't
 * listed.
 */
const ADULT_WORDS: ReadonlySet<string> = new Set(
  [
    "absinthe adult alcohol beer bet betting bingo blackjack bookmaker bourbon brandy brewery cannabis casino cbd",
    "champagne cider cigar cigarette cocktail dating distillery erotic erotica escort firearm gamble gambling gin",
    "hookah hookup lingerie liquor lottery lotto marijuana nicotine poker porn pornography prosecco roulette rum",
    "schnapps sex sexual shisha slots snus spirits sportsbook sweepstake tequila tobacco vape vaping vermouth vodka",
    "wager wagering whiskey whisky wine winery",
  ].flatMap((line) => line.split(" ")),
);

/** Whether an ad is only for people known to be 18 or older. */
export function isForAdults({ adult, category, targeting }: Ad): boolean {
  return adult === true || (targeting.age_min ?? 0) >= ADULT_AGE || category.split("-").some(isAdultWord);
}

function isAdultWord(word: string): boolean {
  return [word, word.replace(/s$/, ""), word.replace(/ies$/, "y")].some((form) => ADULT_WORDS.has(form));
}
