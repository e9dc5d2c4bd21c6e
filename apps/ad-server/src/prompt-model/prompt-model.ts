import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { decodeModel, type ModelWeights, NONE, OTHER_NEED, REJECT_PREFIX } from "./model-weights.ts";
import { featuresOf, MEANING_WEIGHT, type PromptFeatures } from "./prompt-features.ts";
import { loadWordVectors, type WordVectors } from "./word-vectors.ts";

const fileOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** The files that are shipped with the ad server. */
export const WORD_VECTORS_FILE = fileOf("model/word-vectors.bin.gz");
export const PROMPT_MODEL_FILE = fileOf("model/prompt-model.bin.gz");

/** What a prompt seems to be about. The probabilities of all classes add up to 1. */
export interface PromptReading {
  /** By category, the probability that the prompt has a need which the category serves. */
  readonly needs: ReadonlyMap<string, number>;
  /** The probability that it wants to buy something that no known category sells. */
  readonly otherNeed: number;
  /** The probability that there is nothing to sell. */
  readonly none: number;
  /** By topic, the probability that an ad would be wrong. */
  readonly topics: ReadonlyMap<string, number>;
  /** Direction of its meaning, of length 1, for comparison with other texts. */
  readonly meaning: Float32Array;
}

/** A linear model of what prompts are about. It was fitted to labelled prompts; the folder ad-model does that. */
export class PromptModel {
  readonly vectors: WordVectors;
  readonly #weights: ModelWeights;
  readonly #rows: ReadonlyMap<number, number>;

  constructor(weights: ModelWeights, vectors: WordVectors) {
    this.vectors = vectors;
    this.#weights = weights;
    this.#rows = new Map(Array.from(weights.features, (feature, row) => [feature, row]));
  }

  /** Categories whose needs the model knows. */
  get categories(): readonly string[] {
    return this.#weights.classes.filter(isCategory);
  }

  /** SHA-256 of the prompts that the model was fitted to, in hexadecimal. */
  get fittedTo(): string {
    return this.#weights.fittedTo;
  }

  read(prompt: string): PromptReading {
    const features = featuresOf(prompt, this.vectors);
    const probabilities = softmax(this.#scores(features));
    const all = this.#weights.classes.map((name, index) => [name, probabilities[index] ?? 0] as const);
    const one = (wanted: string) => all.find(([name]) => name === wanted)?.[1] ?? 0;
    return {
      needs: new Map(all.filter(([name]) => isCategory(name))),
      otherNeed: one(OTHER_NEED),
      none: one(NONE),
      topics: new Map(
        all.flatMap(([name, probability]) =>
          name.startsWith(REJECT_PREFIX) ? [[name.slice(REJECT_PREFIX.length), probability]] : [],
        ),
      ),
      meaning: features.meaning,
    };
  }

  #scores({ sparse, meaning }: PromptFeatures): Float32Array {
    const { classes, bias, scales, sparse: sparseWeights, dense: denseWeights } = this.#weights;
    const sums = new Float32Array(classes.length);
    for (const [feature, value] of sparse) {
      const row = this.#rows.get(feature);
      if (row !== undefined) {
        addRow(sums, sparseWeights, row * sums.length, value);
      }
    }
    const scores = sums.map((sum, index) => sum * (scales[index] ?? 0) + (bias[index] ?? 0));
    for (const [dimension, value] of meaning.entries()) {
      addRow(scores, denseWeights, dimension * scores.length, value * MEANING_WEIGHT);
    }
    return scores;
  }
}

/** Loads the model that is shipped with the ad server. */
export function loadShippedModel(): PromptModel {
  return new PromptModel(decodeModel(readFileSync(PROMPT_MODEL_FILE)), loadWordVectors(WORD_VECTORS_FILE));
}

function isCategory(name: string): boolean {
  return name !== NONE && name !== OTHER_NEED && !name.startsWith(REJECT_PREFIX);
}

function addRow(sums: Float32Array, rows: Int8Array | Float32Array, start: number, factor: number): void {
  for (let index = 0; index < sums.length; index += 1) {
    sums[index] = (sums[index] ?? 0) + factor * (rows[start + index] ?? 0);
  }
}

/** Turns scores into probabilities that add up to 1. */
export function softmax(scores: Float32Array): Float32Array {
  const highest = scores.reduce((max, score) => Math.max(max, score), Number.NEGATIVE_INFINITY);
  const powers = scores.map((score) => Math.exp(score - highest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}
