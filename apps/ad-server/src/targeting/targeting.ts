import type { InjectionRequest } from "@adrelay/contract";
import type { Ad } from "../catalog/ad.ts";
import { ADULT_AGE, isForAdults } from "./adult-ads.ts";

/** What is known of the person and the moment; an attribute that isn't known is undefined. */
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

/** The audience of a request; `language` is guessed from the prompt, for the interface has no field for it. */
export function audienceOf(request: InjectionRequest, language: string | undefined): Audience {
  const { country, region, city, asn, age, gender } = request.optional_context ?? {};
  return { country, region, city, asn, age, gender, language };
}

/**
 * Whether an ad may be shown to this audience now. An attribute that the ad targets and the audience
 * lacks is no match. An ad for adults needs a known age of 18 or more, whatever its targeting says.
 */
export function isEligible(ad: Ad, audience: Audience, nowMs: number): boolean {
  const { targeting } = ad;
  return (
    isInFlight(ad, nowMs) &&
    isOldEnough(ad, audience.age) &&
    isOneOf(audience.country, targeting.countries) &&
    isRegionOf(audience, targeting.regions) &&
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

/** Callers write a region whole (US-CA) or, beside its country, short (CA); either side in any case. */
function isRegionOf({ country, region }: Audience, targeted: readonly string[] | undefined): boolean {
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
