/** What is known of a prompt and an ad together. All are from 0 to 1. */
export interface FitSigns {
  /** The probability of the prompt's likeliest need, among all needs. */
  readonly certainty: number;
  /** How probably the ad serves what the prompt wants: 1 if it surely serves the likeliest need. */
  readonly served: number;
  /** The probability that the prompt wants anything that can be sold. */
  readonly wish: number;
}

/** Keeps logarithms finite. */
const SMALLEST = 1e-4;
/** The model is too sure: a wish of 0.999 is no better than one of 0.98. */
const WISH_SCORE_MAX = 4;

/**
 * Weights of a logistic regression on the signs, in the order of `termsOf`. `node ad-model/fit-signs.ts` fits them to the
 * development prompts of two catalogues, each also tried with the other catalogue, in which nearly nothing fits.
 */
export const SIGN_WEIGHTS: readonly number[] = [0.56, 0.75, 1.44, 0.29];

/** What the weights are multiplied with. The first is for the probability without any signs. */
export function termsOf({ certainty, served, wish }: FitSigns): number[] {
  const wishScore = Math.log((wish + SMALLEST) / (1 - wish + SMALLEST));
  return [
    1,
    Math.log(certainty + SMALLEST),
    Math.log(served + SMALLEST),
    Math.min(WISH_SCORE_MAX, Math.max(-WISH_SCORE_MAX, wishScore)),
  ];
}

/** The probability that an ad serves a prompt's need. */
export function fitProbability(signs: FitSigns): number {
  const score = termsOf(signs).reduce((sum, term, index) => sum + term * (SIGN_WEIGHTS[index] ?? 0), 0);
  return 1 / (1 + Math.exp(-score));
}
