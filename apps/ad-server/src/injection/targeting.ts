import type { InjectionRequest } from "@adrelay/contract";
import type { Ad } from "../catalog/ad.ts";

/** What is known of the person who asks. An unknown attribute is undefined. */
export interface Audience {
  readonly country: string | undefined;
  readonly region: string | undefined;
  readonly city: string | undefined;
  readonly asn: number | undefined;
  readonly age: number | undefined;
  readonly gender: string | undefined;
  /** Language of the prompt, ISO 639-1. */
  readonly language: string | undefined;
}

/** The audience of a request. `language` is detected from the prompt, since the interface has no field for it. */
export function audienceOf(request: InjectionRequest, language: string | undefined): Audience {
  const { country, region, city, asn, age, gender } = request.optional_context ?? {};
  return { country, region, city, asn, age, gender, language };
}

/**
 * Whether an ad may be shown to this audience now. An attribute that the ad targets must be known and must match. An ad
 * for adults needs a known age of 18 or more, whatever its targeting says.
 */
export function isEligible(ad: Ad, audience: Audience, nowMs: number): boolean {
  const { targeting } = ad;
  return (
    isInFlight(ad, nowMs) &&
    isOldEnough(ad, audience.age) &&
    isOneOf(audience.country, targeting.countries) &&
    isInRegion(audience, targeting.regions) &&
    isOneOf(
      audience.city?.toLowerCase(),
      targeting.cities?.map((city) => city.toLowerCase()),
    ) &&
    isOneOf(audience.asn, targeting.asns) &&
    isOneOf(audience.gender, targeting.genders) &&
    isOneOf(audience.language, targeting.languages) &&
    isAgeWithin(audience.age, targeting.age_min, targeting.age_max)
  );
}

/** Both ends of a flight belong to it. */
function isInFlight({ start, end }: Ad, nowMs: number): boolean {
  return (start ?? Number.NEGATIVE_INFINITY) <= nowMs && nowMs <= (end ?? Number.POSITIVE_INFINITY);
}

function isOneOf<T>(value: T | undefined, targeted: readonly T[] | undefined): boolean {
  return targeted === undefined || (value !== undefined && targeted.includes(value));
}

/** Callers write a region in full (US-CA) or, with a country beside it, in short (CA). Case doesn't matter. */
function isInRegion({ country, region }: Audience, targeted: readonly string[] | undefined): boolean {
  const regions = targeted?.map((name) => name.toUpperCase());
  return (
    isOneOf(region?.toUpperCase(), regions) ||
    (country !== undefined && region !== undefined && isOneOf(`${country}-${region.toUpperCase()}`, regions))
  );
}

function isOldEnough(ad: Ad, age: number | undefined): boolean {
  return !isForAdults(ad) || (age !== undefined && age >= ADULT_AGE);
}

function isAgeWithin(age: number | undefined, min: number | undefined, max: number | undefined): boolean {
  if (min === undefined && max === undefined) {
    return true;
  }
  return age !== undefined && age >= (min ?? 0) && age <= (max ?? Number.POSITIVE_INFINITY);
}

export const ADULT_AGE = 18;

/**
 * An ad is for adults if its category's name has one of these words, in the singular or the plural, even if the
 * catalogue forgot to mark it. For what isn't listed here, and for other laws, the catalogue has `adult` and `age_min`.
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
