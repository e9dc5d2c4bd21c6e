/** What the model reads of an ad: what it sells, and how surely. */
import type { Ad } from "../catalog/ad.ts";
import { OTHER_NEED } from "../prompt-model/model-weights.ts";
import type { PromptModel, TextReading } from "../prompt-model/prompt-model.ts";
import { type NeedProfile, profileOf } from "./need-profile.ts";
import { isSensitiveAd } from "./sensitive-ads.ts";

/** Least share of the likeliest need of an ad whose texts say clearly what is sold. */
const CLEAR_SHARE_MIN = 0.3;

type TextReader = Pick<PromptModel, "read">;
export type AdReader = Pick<PromptModel, "needs" | "read">;

/** What the model says of an ad. It depends on the ad's texts alone. */
export interface AdReading {
  readonly profile: NeedProfile;
  readonly isSensitive: boolean;
  /** The direction of meaning of the texts. */
  readonly meaning: Float32Array;
}

/** What an ad says of what it sells. */
function textOfAd({ category, description, keywords }: Ad): string {
  return `${category.replaceAll("-", " ")}. ${description} ${keywords.join(", ")}`;
}

/** Ads with the same key have the same reading. */
export function readingKeyOf(ad: Ad): string {
  return `${textOfAd(ad)}\n${ad.product_name}`;
}

/**
 * The model's reading of an ad. Most product names are invented, and their letters would change at random what is read,
 * so that equal ads would not be equal offers. A name counts only if the other texts don't say what is sold.
 */
export function readTextsOf(ad: Ad, model: TextReader): TextReading {
  const text = textOfAd(ad);
  const reading = model.read(text);
  const isClear = clearShareOf(profileOf(reading)) >= CLEAR_SHARE_MIN;
  return withCategory(ad, isClear ? reading : model.read(`${ad.product_name}. ${text}`), model);
}

/** Least share of the likeliest need of a category whose name says what is sold. */
const CATEGORY_SHARE_MIN = 0.5;

/**
 * A category such as `hearing-aids` says what is sold, and a longer description drowns it: earplugs are much like
 * headphones. So its own reading counts as much as that of all texts, unless its name says nothing.
 */
function withCategory({ category }: Ad, reading: TextReading, model: TextReader): TextReading {
  const named = model.read(category.replaceAll("-", " "));
  return clearShareOf(profileOf(named)) >= CATEGORY_SHARE_MIN
    ? { ...reading, needs: reading.needs.map((share, need) => (share + (named.needs[need] ?? 0)) / 2) }
    : reading;
}

export function readAd(ad: Ad, model: AdReader): AdReading {
  const reading = readTextsOf(ad, model);
  return {
    profile: profileOf(reading),
    isSensitive: isSensitiveAd(reading, model.needs),
    meaning: reading.meaning,
  };
}

/** The share of the likeliest need. */
function clearShareOf(profile: NeedProfile): number {
  return profile[0]?.probability ?? 0;
}

/**
 * Whether prompts can find an ad: `unclear` if its texts don't say clearly what is sold, `unknown` if they say that it
 * is something that none of the model's needs serves.
 */
export type AdClarity = "clear" | "unclear" | "unknown";

/** What an ad is read as. */
export interface AdExplanation {
  readonly clarity: AdClarity;
  /** Sensitive ads are shown only if the prompt clearly wants just them. */
  readonly isSensitive: boolean;
  /** The likeliest needs with their shares, from 0 to 1. */
  readonly needs: readonly { readonly need: string; readonly share: number }[];
}

const EXPLAINED_NEEDS_MAX = 3;
/** Needs of smaller shares say nothing. */
const EXPLAINED_SHARE_MIN = 0.01;

/** Returns a function that says what an ad is read as. */
export function adExplainer(model: Pick<PromptModel, "needs" | "read">): (ad: Ad) => AdExplanation {
  return (ad) => {
    const reading = readTextsOf(ad, model);
    const profile = profileOf(reading);
    const needs = profile
      .map(({ need, probability }) => ({ need: model.needs[need] ?? "", share: probability }))
      .filter(({ share }, index) => index === 0 || share >= EXPLAINED_SHARE_MIN)
      .slice(0, EXPLAINED_NEEDS_MAX);
    const isClear = clearShareOf(profile) >= CLEAR_SHARE_MIN;
    const isUnknown = needs[0]?.need === OTHER_NEED;
    return {
      clarity: isClear ? (isUnknown ? "unknown" : "clear") : "unclear",
      isSensitive: isSensitiveAd(reading, model.needs),
      needs,
    };
  };
}
