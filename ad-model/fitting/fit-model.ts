import { gzipSync } from "node:zlib";
import type { ModelWeights } from "../../apps/ad-server/src/prompt-model/model-weights.ts";
import {
  featuresOf,
  MEANING_WEIGHT,
  type PromptFeatures,
} from "../../apps/ad-server/src/prompt-model/prompt-features.ts";
import { softmax } from "../../apps/ad-server/src/prompt-model/prompt-model.ts";
import type { WordVectors } from "../../apps/ad-server/src/prompt-model/word-vectors.ts";
import type { LabelledPrompt } from "./training-prompts.ts";

export interface FitOptions {
  readonly rounds: number;
  readonly learningRate: number;
  /** Pulls every weight towards 0. */
  readonly decay: number;
  /** A sparse feature gets a weight only if at least this many prompts have it. */
  readonly promptsMin: number;
}
export const FIT_OPTIONS: FitOptions = { rounds: 14, learningRate: 0.3, decay: 1e-4, promptsMin: 2 };

/** Smaller gradients are skipped to save time: most classes have nothing to do with most prompts. */
const GRADIENT_MIN = 1e-7;
const SQUARES_START = 1e-6;

interface Example {
  /** Rows of the weights with their factors: first the sparse features, then the dimensions of the meaning. */
  readonly rows: Uint32Array;
  readonly values: Float32Array;
  readonly target: Float32Array;
}

/**
 * Fits a multinomial logistic regression with AdaGrad, one prompt at a time, and averages the weights over the second
 * half of the rounds. The same prompts in the same order give the same model.
 */
export function fitModel(
  prompts: readonly LabelledPrompt[],
  {
    vectors,
    fittedTo,
    options = FIT_OPTIONS,
  }: { vectors: WordVectors; fittedTo: string; options?: FitOptions },
): ModelWeights {
  const classes = [...new Set(prompts.flatMap((labelled) => labelled.classes))].sort();
  const read = prompts.map(({ prompt }) => featuresOf(prompt, vectors));
  const features = frequentFeatures(read, options.promptsMin);
  const rowOf = new Map(Array.from(features, (feature, row) => [feature, row]));
  const examples = read.map((found, index) => ({
    ...rowsOf(found, rowOf),
    target: targetOf(prompts[index]?.classes ?? [], classes),
  }));
  const rowCount = features.length + vectors.dimensions;
  const { weights, bias } = descend(examples, { rowCount, classCount: classes.length, options });
  const sparse = weights.subarray(0, features.length * classes.length);
  const dense = weights.slice(features.length * classes.length);
  return { classes, fittedTo, features, dense, bias, ...quantise(sparse, classes.length) };
}

/** The file of a model, as decodeModel in the ad server reads it. */
export function encodeModel(weights: ModelWeights): Buffer {
  const { classes, fittedTo, features, dense, sparse, scales, bias } = weights;
  const header = { classes, fittedTo, features: features.length, dimensions: dense.length / classes.length };
  const arrays = [features, scales, dense, bias, sparse].map(
    (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength),
  );
  return gzipSync(Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), ...arrays]), { level: 9 });
}

function frequentFeatures(read: readonly PromptFeatures[], promptsMin: number): Uint32Array {
  const prompts = new Map<number, number>();
  for (const feature of read.flatMap(({ sparse }) => [...sparse.keys()])) {
    prompts.set(feature, (prompts.get(feature) ?? 0) + 1);
  }
  return Uint32Array.from(
    [...prompts].filter(([, count]) => count >= promptsMin).map(([feature]) => feature),
  ).sort();
}

function rowsOf({ sparse, meaning }: PromptFeatures, rowOf: ReadonlyMap<number, number>) {
  const known = [...sparse].flatMap(([feature, value]) => {
    const row = rowOf.get(feature);
    return row === undefined ? [] : [[row, value] as const];
  });
  const all = [
    ...known,
    ...Array.from(meaning, (value, dimension) => [rowOf.size + dimension, value * MEANING_WEIGHT] as const),
  ];
  return {
    rows: Uint32Array.from(all, ([row]) => row),
    values: Float32Array.from(all, ([, value]) => value),
  };
}

function targetOf(wanted: readonly string[], classes: readonly string[]): Float32Array {
  return Float32Array.from(classes, (name) => (wanted.includes(name) ? 1 / wanted.length : 0));
}

function descend(
  examples: readonly Example[],
  { rowCount, classCount, options }: { rowCount: number; classCount: number; options: FitOptions },
) {
  const state = {
    weights: new Float32Array(rowCount * classCount),
    squares: new Float32Array(rowCount * classCount).fill(SQUARES_START),
    bias: new Float32Array(classCount),
    biasSquares: new Float32Array(classCount).fill(SQUARES_START),
  };
  const mean = { weights: new Float32Array(state.weights.length), bias: new Float32Array(classCount) };
  const averagedFrom = Math.floor(options.rounds / 2);
  const order = new Shuffler(examples.length);
  for (let round = 0; round < options.rounds; round += 1) {
    for (const index of order.next()) {
      const example = examples[index];
      if (example !== undefined) {
        step(state, example, options);
      }
    }
    if (round >= averagedFrom) {
      addShare(mean.weights, state.weights, 1 / (options.rounds - averagedFrom));
      addShare(mean.bias, state.bias, 1 / (options.rounds - averagedFrom));
    }
  }
  return mean;
}

interface FitState {
  readonly weights: Float32Array;
  readonly squares: Float32Array;
  readonly bias: Float32Array;
  readonly biasSquares: Float32Array;
}

function step(state: FitState, { rows, values, target }: Example, { learningRate, decay }: FitOptions): void {
  const classCount = target.length;
  const scores = Float32Array.from(state.bias);
  for (let position = 0; position < rows.length; position += 1) {
    const start = (rows[position] ?? 0) * classCount;
    const value = values[position] ?? 0;
    for (let index = 0; index < classCount; index += 1) {
      scores[index] = (scores[index] ?? 0) + value * (state.weights[start + index] ?? 0);
    }
  }
  const errors = softmax(scores).map((probability, index) => probability - (target[index] ?? 0));
  descendRow(state.bias, state.biasSquares, {
    start: 0,
    errors,
    value: 1,
    learningRate: learningRate / 2,
    decay: 0,
  });
  for (let position = 0; position < rows.length; position += 1) {
    const start = (rows[position] ?? 0) * classCount;
    const value = values[position] ?? 0;
    descendRow(state.weights, state.squares, { start, errors, value, learningRate, decay });
  }
}

function descendRow(
  weights: Float32Array,
  squares: Float32Array,
  row: { start: number; errors: Float32Array; value: number; learningRate: number; decay: number },
): void {
  const { start, errors, value, learningRate, decay } = row;
  for (let index = 0; index < errors.length; index += 1) {
    const at = start + index;
    const gradient = (errors[index] ?? 0) * value + decay * (weights[at] ?? 0);
    if (Math.abs(gradient) >= GRADIENT_MIN) {
      const square = (squares[at] ?? 0) + gradient * gradient;
      squares[at] = square;
      weights[at] = (weights[at] ?? 0) - (learningRate * gradient) / Math.sqrt(square);
    }
  }
}

function addShare(sum: Float32Array, part: Float32Array, share: number): void {
  for (let index = 0; index < sum.length; index += 1) {
    sum[index] = (sum[index] ?? 0) + share * (part[index] ?? 0);
  }
}

/** Rounds weights to bytes in units of each class's scale, which is a 127th of its largest weight. */
function quantise(weights: Float32Array, classCount: number) {
  const scales = new Float32Array(classCount);
  weights.forEach((weight, at) => {
    scales[at % classCount] = Math.max(scales[at % classCount] ?? 0, Math.abs(weight) / 127);
  });
  return {
    scales,
    sparse: Int8Array.from(weights, (weight, at) => Math.round(weight / (scales[at % classCount] || 1))),
  };
}

/** Shuffles the numbers below `length`, with the same permutations in every run. */
class Shuffler {
  readonly #order: number[];
  #state = 1;

  constructor(length: number) {
    this.#order = Array.from({ length }, (_, index) => index);
  }

  next(): readonly number[] {
    for (let end = this.#order.length - 1; end > 0; end -= 1) {
      this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
      const other = Math.floor((this.#state / 2 ** 32) * (end + 1));
      const [a, b] = [this.#order[end] ?? 0, this.#order[other] ?? 0];
      this.#order[end] = b;
      this.#order[other] = a;
    }
    return this.#order;
  }
}
