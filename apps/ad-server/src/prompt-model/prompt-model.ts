import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { decodeModel, type ModelWeights, NONE, REJECT_PREFIX } from "./model-weights.ts";
import { featuresOf, MEANING_WEIGHT, type TextFeatures } from "./text-features.ts";
import { loadWordVectors, type WordVectors } from "./word-vectors.ts";

const fileOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** The files that are shipped with the ad server. */
export const WORD_VECTORS_FILE = fileOf("model/word-vectors.bin.gz");
export const PROMPT_MODEL_FILE = fileOf("model/prompt-model.bin.gz");

/** What a text seems to be about. All probabilities together add up to 1. */
export interface TextReading {
  /** The probability of each need, in the order of `PromptModel.needs`. */
  readonly needs: Float32Array;
  /** The probability that there is nothing to sell. */
  readonly none: number;
  /** By topic, the probability that an ad would be wrong. */
  readonly topics: ReadonlyMap<string, number>;
  /** Direction of its meaning, of length 1 (0 without a known word), for comparison with other texts. */
  readonly meaning: Float32Array;
}

/** A model of what texts are about. It was fitted to labelled texts; the folder ad-model does that. */
export class PromptModel {
  /** The needs that the model tells apart, and last `other`. They come first among its classes. */
  readonly needs: readonly string[];
  readonly #weights: ModelWeights;
  readonly vectors: WordVectors;
  readonly #rows: ReadonlyMap<number, number>;
  readonly #topics: readonly (readonly [topic: string, index: number])[];

  constructor(weights: ModelWeights, vectors: WordVectors) {
    const { classes } = weights;
    this.needs = classes.slice(0, classes.indexOf(NONE));
    this.#weights = weights;
    this.vectors = vectors;
    this.#rows = new Map(Array.from(weights.features, (feature, row) => [feature, row]));
    this.#topics = classes.flatMap((name, index) =>
      name.startsWith(REJECT_PREFIX) ? [[name.slice(REJECT_PREFIX.length), index] as const] : [],
    );
  }

  /** SHA-256 of the texts that the model was fitted to, in hexadecimal. */
  get fittedTo(): string {
    return this.#weights.fittedTo;
  }

  read(text: string): TextReading {
    const features = featuresOf(text, this.vectors);
    const probabilities = softmax(this.#scores(features));
    return {
      needs: probabilities.subarray(0, this.needs.length),
      none: probabilities[this.needs.length] ?? 0,
      topics: new Map(this.#topics.map(([topic, index]) => [topic, probabilities[index] ?? 0])),
      meaning: features.meaning,
    };
  }

  #scores({ sparse, meaning }: TextFeatures): Float32Array {
    const { rank, rows, rowScales, meaning: meaningWeights, outputs, bias } = this.#weights;
    const hidden = new Float32Array(rank);
    for (const [feature, value] of sparse) {
      const row = this.#rows.get(feature);
      if (row !== undefined) {
        addBytes(hidden, rows, row * rank, value * (rowScales[row] ?? 0));
      }
    }
    for (let dimension = 0; dimension < meaning.length; dimension += 1) {
      addFloats(hidden, meaningWeights, dimension * rank, (meaning[dimension] ?? 0) * MEANING_WEIGHT);
    }
    const scores = new Float32Array(bias.length);
    for (let index = 0; index < scores.length; index += 1) {
      scores[index] = (bias[index] ?? 0) + productOf(hidden, outputs, index * rank);
    }
    return scores;
  }
}

/** Loads the model that is shipped with the ad server. */
export function loadShippedModel(): PromptModel {
  return new PromptModel(decodeModel(readFileSync(PROMPT_MODEL_FILE)), loadWordVectors(WORD_VECTORS_FILE));
}

// Two functions for one rule: V8 makes faster code for a function that sees one kind of array.
function addBytes(sums: Float32Array, rows: Int8Array, start: number, factor: number): void {
  for (let index = 0; index < sums.length; index += 1) {
    sums[index] = (sums[index] ?? 0) + factor * (rows[start + index] ?? 0);
  }
}

function addFloats(sums: Float32Array, rows: Float32Array, start: number, factor: number): void {
  for (let index = 0; index < sums.length; index += 1) {
    sums[index] = (sums[index] ?? 0) + factor * (rows[start + index] ?? 0);
  }
}

function productOf(vector: Float32Array, rows: Float32Array, start: number): number {
  let sum = 0;
  for (let index = 0; index < vector.length; index += 1) {
    sum += (vector[index] ?? 0) * (rows[start + index] ?? 0);
  }
  return sum;
}

/** Turns scores into probabilities, in place. */
function softmax(scores: Float32Array): Float32Array {
  let highest = Number.NEGATIVE_INFINITY;
  for (const score of scores) {
    highest = Math.max(highest, score);
  }
  let sum = 0;
  for (let index = 0; index < scores.length; index += 1) {
    const power = Math.exp((scores[index] ?? 0) - highest);
    scores[index] = power;
    sum += power;
  }
  for (let index = 0; index < scores.length; index += 1) {
    scores[index] = (scores[index] ?? 0) / sum;
  }
  return scores;
}
