import type { Ad } from "../catalog/ad.ts";

export interface ScoredAd {
  readonly ad: Ad;
  /** In (0, 1]: the auction weighs bids by it. */
  readonly score: number;
}

/** Finds the ads that answer a need in a prompt. It knows nothing of who asks: that is targeting. */
export interface Relevance {
  /** Ads close enough to the prompt to be worth showing, best first; none for most prompts. */
  rank(prompt: string): readonly ScoredAd[];
}
