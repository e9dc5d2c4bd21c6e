import type { Ad } from "../catalog/ad.ts";
import type { PromptReading } from "../prompt-model/prompt-model.ts";

export interface ScoredAd {
  readonly ad: Ad;
  /** How well the ad answers the need, above 0 and at most 1; comparable between prompts. */
  readonly score: number;
}

/** A prompt with what is known of it before any ad is looked at. */
export interface Question {
  readonly prompt: string;
  /** ISO 639-1. A prompt whose language nobody can tell gets no ad, so it is no question here. */
  readonly language: string;
  readonly reading: PromptReading;
}

/** Finds the ads that answer a need in a prompt. It knows nothing of who asks: that is targeting. */
export interface Relevance {
  /** Ads close enough to the prompt to be worth showing, best first; none for most prompts. */
  rank(question: Question): Promise<readonly ScoredAd[]>;
}
