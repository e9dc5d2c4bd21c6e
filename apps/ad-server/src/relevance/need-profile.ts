import type { TextReading } from "../prompt-model/prompt-model.ts";

/** Needs beyond the likeliest ones are left out. They would add work and next to nothing to an agreement. */
const NEEDS_MAX = 16;

/** How much a text is about one need. */
interface NeedShare {
  /** The number of the need in `PromptModel.needs`. */
  readonly need: number;
  /** Its probability among all needs, from 0 to 1. */
  readonly probability: number;
  /** As `probability`, but closer to the others: the model is surer than it should be. */
  readonly softened: number;
}

/** What a text wants or sells: the needs that it is most about, likeliest first. */
export type NeedProfile = readonly NeedShare[];

/**
 * The profile of a text, whatever the probability that it wants or sells anything. The softened shares are those of the
 * square roots of the probabilities, so that the second likeliest need counts, too.
 */
export function profileOf({ needs }: Pick<TextReading, "needs">): NeedProfile {
  let [sum, rootSum] = [0, 0];
  for (const probability of needs) {
    sum += probability;
    rootSum += Math.sqrt(probability);
  }
  return likeliest(needs).map((need) => {
    const probability = needs[need] ?? 0;
    return { need, probability: probability / sum, softened: Math.sqrt(probability) / rootSum };
  });
}

/** How much two profiles agree, from 0 to 1: the sum of the products of their softened shares. */
export function agreementOf(one: NeedProfile, other: NeedProfile): number {
  const shares = new Map(other.map(({ need, softened }) => [need, softened]));
  return one.reduce((sum, { need, softened }) => sum + softened * (shares.get(need) ?? 0), 0);
}

/** The numbers of the likeliest needs, in one pass. */
function likeliest(needs: Float32Array): number[] {
  const found: number[] = [];
  let least = 0;
  for (let need = 0; need < needs.length; need += 1) {
    const probability = needs[need] ?? 0;
    if (found.length < NEEDS_MAX || probability > least) {
      found.push(need);
      found.sort((one, other) => (needs[other] ?? 0) - (needs[one] ?? 0));
      found.length = Math.min(found.length, NEEDS_MAX);
      least = needs[found.at(-1) ?? 0] ?? 0;
    }
  }
  return found;
}

/**
 * How alike two profiles are, from 0 to 1: the cosine of their angle. Unlike their agreement, it doesn't fall if a profile
 * is spread over many needs, as those of texts of one or two words are.
 */
export function likenessOf(one: NeedProfile, other: NeedProfile): number {
  const lengths = Math.sqrt(agreementOf(one, one) * agreementOf(other, other));
  return lengths === 0 ? 0 : agreementOf(one, other) / lengths;
}
