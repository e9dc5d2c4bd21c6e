import type { PromptReading } from "../prompt-model/prompt-model.ts";

/** By what a need is told from none, and one category's from another's. */
export interface NeedThresholds {
  /** Share of needs among needs and none: below it there is nothing to sell. */
  readonly needMin: number;
  /** Share of one category among all needs. The model knows English best. */
  readonly shareMin: { readonly en: number; readonly other: number };
  /** Of two categories the weaker must have so much of the stronger one's share. */
  readonly ofBestMin: number;
}

export interface NeedCategory {
  readonly category: string;
  /** Share of the category among all needs, at most 1. */
  readonly share: number;
}

/** The categories that serve a prompt's need, best first; none where the need or its category is in doubt. */
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

/** Share of wishes to buy anything among these and none. */
export function wishShare({ needs, otherNeed, none }: PromptReading): number {
  const wish = [...needs.values()].reduce((sum, probability) => sum + probability, otherNeed);
  return wish / (wish + none);
}
