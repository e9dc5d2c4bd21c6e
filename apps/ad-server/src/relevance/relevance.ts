import type { Ad } from "../catalog/ad.ts";
import type { TextReading } from "../prompt-model/prompt-model.ts";

export interface ScoredAd {
  readonly ad: Ad;
  /** The probability that the ad serves the need, at most 1. It is comparable between prompts and catalogues. */
  readonly score: number;
}

/** A prompt and what is known of it before any ad is looked at. */
export interface Question {
  readonly prompt: string;
  /** ISO 639-1. A prompt whose language can't be detected gets no ad before it comes here. */
  readonly language: string;
  readonly reading: TextReading;
}

/** Finds the ads that answer a need in a prompt. Who asks doesn't matter here: that is targeting. */
export interface Relevance {
  /** Ads that are relevant enough to be shown, best first. For most prompts there are none. */
  rank(question: Question): readonly ScoredAd[];
}
