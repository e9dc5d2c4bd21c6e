import type { Ad } from "../catalog/ad.ts";
import type { PromptReading } from "../prompt-model/prompt-model.ts";

export interface ScoredAd {
  readonly ad: Ad;
  /** How well the ad answers the need: above 0, at most 1, and comparable between prompts. */
  readonly score: number;
}

/** A prompt and what is known of it before any ad is looked at. */
export interface Question {
  readonly prompt: string;
  /** ISO 639-1. A prompt whose language can't be detected gets no ad before it comes here. */
  readonly language: string;
  readonly reading: PromptReading;
}

/** Finds the ads that answer a need in a prompt. Who asks doesn't matter here: that is targeting. */
export interface Relevance {
  /** Ads that are relevant enough to be shown, best first. For most prompts there are none. */
  rank(question: Question): Promise<readonly ScoredAd[]>;
}

/** When a prompt counts as having a need, and when the need is one of a category. Shares are from 0 to 1. */
export interface NeedThresholds {
  /** Least share of the categories' needs among all needs and no need. Below it there is nothing to sell. */
  readonly needMin: number;
  /** Least share of one category among all categories. The model knows English best. */
  readonly shareMin: { readonly en: number; readonly other: number };
  /** Least share of a category, as a part of the best category's share. */
  readonly ofBestMin: number;
}

interface NeedCategory {
  readonly category: string;
  /** Share of the category among all categories, at most 1. */
  readonly share: number;
}

/** The categories of a prompt's need, best first; none if the need or its category is in doubt. */
export function needCategories(
  { needs, otherNeed, none }: PromptReading,
  language: string,
  { needMin, shareMin, ofBestMin }: NeedThresholds,
): NeedCategory[] {
  const need = [...needs.values()].reduce((sum, probability) => sum + probability, 0);
  if (need < needMin * (need + otherNeed + none)) {
    return [];
  }
  const ranked = Array.from(needs, ([category, probability]) => ({
    category,
    share: probability / need,
  })).sort((a, b) => b.share - a.share);
  const best = ranked[0]?.share ?? 0;
  const floor = Math.max(language === "en" ? shareMin.en : shareMin.other, best * ofBestMin);
  return ranked.filter(({ share }) => share >= floor);
}

/** Probability that the prompt wishes to buy anything, in a known category or not. Sensitive topics are left out. */
export function wishShare({ needs, otherNeed, none }: PromptReading): number {
  const wish = [...needs.values()].reduce((sum, probability) => sum + probability, otherNeed);
  return wish / (wish + none);
}
