/** What is known of a prompt and an ad together. All are from 0 to 1. */
export interface FitSigns {
  /** The probability of the prompt's likeliest need, among all needs. */
  readonly certainty: number;
  /** How probably the ad serves what the prompt wants: 1 if it surely serves the likeliest need. */
  readonly served: number;
  /** The probability that the prompt wants anything that can be sold. */
  readonly wish: number;
  /** How much of one of the ad's keywords is in the prompt. */
  readonly keyword: number;
}

/** Keeps logarithms finite. */
const SMALLEST = 1e-4;
/** The model is too sure: a wish of 0.999 is no better than one of 0.98. */
const WISH_SCORE_MAX = 4;

/**
 * The probability that an ad serves a prompt's need: a logistic regression on the signs. It was fitted to the development
 * prompts of two catalogues, each also tried with the other catalogue, in which nearly nothing fits; see docs/adr/0034.
 */
export function fitProbability({ certainty, served, wish, keyword }: FitSigns): number {
  const wishScore = Math.log((wish + SMALLEST) / (1 - wish + SMALLEST));
  const score =
    -0.35 +
    0.55 * Math.log(certainty + SMALLEST) +
    1.77 * Math.log(served + SMALLEST) +
    0.43 * Math.min(WISH_SCORE_MAX, Math.max(-WISH_SCORE_MAX, wishScore)) +
    0.89 * keyword;
  return 1 / (1 + Math.exp(-score));
}
