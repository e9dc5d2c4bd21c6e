import type { Ad } from "../catalog/ad.ts";
import type { TextReading } from "../prompt-model/prompt-model.ts";

export interface ScoredAd {
  readonly ad: Ad;
  /**
   * The probability that the ad serves the need, lowered by up to 30 % the farther its words are from the prompt's. It is
   * comparable between prompts and catalogues.
   */
  readonly score: number;
}

/** Finds the ads that answer a need in a prompt. Who asks doesn't matter here: that is targeting. */
export interface Relevance {
  /** Ads that are relevant enough to be shown, best first. For most prompts there are none. */
  rank(reading: TextReading): readonly ScoredAd[];
}
