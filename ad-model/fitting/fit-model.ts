import { gzipSync } from "node:zlib";
import type { ModelWeights } from "../../apps/ad-server/src/prompt-model/model-weights.ts";
import {
  featuresOf,
  MEANING_WEIGHT,
  type TextFeatures,
} from "../../apps/ad-server/src/prompt-model/text-features.ts";
import type { WordVectors } from "../../apps/ad-server/src/prompt-model/word-vectors.ts";
import { Adagrad } from "./adagrad.ts";
import type { LabelledText } from "./training-texts.ts";
import { WeightedDraw } from "./weighted-draw.ts";

export interface FitOptions {
  /** How many texts are drawn, with repetition. */
  readonly draws: number;
  readonly learningRate: number;
  /** Each feature of a drawn text is left out with this probability, so that no single word decides. */
  readonly dropout: number;
  /** Pulls every weight towards 0. */
  readonly decay: number;
  /** Numbers in the hidden vector of a text. */
  readonly rank: number;
  /** A feature gets a row only if at least this many texts have it. */
  readonly textsMin: number;
}
export const FIT_OPTIONS: FitOptions = {
  draws: 1_600_000,
  learningRate: 0.1,
  dropout: 0.2,
  decay: 3e-4,
  rank: 96,
  textsMin: 8,
};

/** Probabilities below this have no effect on the weights; leaving them out saves most of the time. */
const ERROR_MIN = 1e-5;

interface Example {
  /** Rows of the features, with their values. */
  readonly rows: Uint32Array;
  readonly values: Float32Array;
  readonly meaning: Float32Array;
  /** Indices of the classes that the label allows. */
  readonly allowed: readonly number[];
}

/**
 * Fits the model by stochastic gradient descent (AdaGrad), one text at a time. A text becomes a hidden vector, which
 * is the sum of its features' rows and of its meaning times a matrix; the scores of the classes are the products of
 * the hidden vector with the columns of a second matrix.
 *
 * A label may leave open which of several classes is right: a sentence of a harmless prompt is no sensitive topic, but
 * it may or may not wish for something. Then the sum of their probabilities is fitted.
 *
 * The same texts in the same order give the same model.
 */
export function fitModel(
  texts: readonly LabelledText[],
  {
    classes,
    vectors,
    fittedTo,
    options = FIT_OPTIONS,
    onProgress = () => {},
  }: {
    classes: readonly string[];
    vectors: WordVectors;
    fittedTo: string;
    options?: FitOptions;
    onProgress?: (share: number) => void;
  },
): ModelWeights {
  const read = texts.map(({ text }) => featuresOf(text, vectors));
  const features = frequentFeatures(read, options.textsMin);
  const rowOf = new Map(Array.from(features, (feature, row) => [feature, row]));
  const indicesOf = indexReader(classes);
  const examples = read.map(({ sparse, meaning }, index): Example => {
    const known = [...sparse].filter(([feature]) => rowOf.has(feature));
    return {
      rows: Uint32Array.from(known, ([feature]) => rowOf.get(feature) ?? 0),
      values: Float32Array.from(known, ([, value]) => value),
      meaning: meaning.map((value) => value * MEANING_WEIGHT),
      allowed: indicesOf(texts[index]?.classes ?? []),
    };
  });
  const shape = { features: features.length, classes: classes.length, dimensions: vectors.dimensions };
  const descent = new Descent(shape, options);
  const draw = new WeightedDraw(texts.map(({ weight }) => weight));
  for (let drawn = 0; drawn < options.draws; drawn += 1) {
    const example = examples[draw.next()];
    if (example !== undefined) {
      descent.step(example, draw);
    }
    if (drawn % 50_000 === 0) {
      descent.slowDown(1 - drawn / options.draws);
      onProgress(drawn / options.draws);
    }
  }
  return { classes, fittedTo, features, rank: options.rank, ...descent.weights() };
}

interface Shape {
  readonly features: number;
  readonly classes: number;
  readonly dimensions: number;
}

/** The weights while they are fitted. */
class Descent {
  readonly #options: FitOptions;
  readonly #rank: number;
  readonly #classCount: number;
  readonly #rows: Adagrad;
  readonly #meaning: Adagrad;
  /** One row a class. */
  readonly #outputs: Adagrad;
  readonly #bias: Adagrad;
  readonly #hidden: Float32Array;
  readonly #hiddenError: Float32Array;
  readonly #scores: Float32Array;

  constructor({ features, classes, dimensions }: Shape, options: FitOptions) {
    const { rank, learningRate, decay } = options;
    this.#options = options;
    this.#rank = rank;
    this.#classCount = classes;
    this.#rows = new Adagrad(features * rank, { learningRate, decay, spread: 0 });
    this.#meaning = new Adagrad(dimensions * rank, { learningRate, decay, spread: 0.15 });
    this.#outputs = new Adagrad(classes * rank, { learningRate, decay, spread: 0.3 });
    this.#bias = new Adagrad(classes, { learningRate, decay: 0, spread: 0 });
    this.#hidden = new Float32Array(rank);
    this.#hiddenError = new Float32Array(rank);
    this.#scores = new Float32Array(classes);
  }

  /** Lowers the learning rate to a share of its first value. */
  slowDown(share: number): void {
    for (const part of [this.#rows, this.#meaning, this.#outputs, this.#bias]) {
      part.rateShare = share;
    }
  }

  step(example: Example, draw: WeightedDraw): void {
    const { dropout } = this.#options;
    const values = example.values.map((value) => (draw.chance() < dropout ? 0 : value / (1 - dropout)));
    this.#readHidden(example, values);
    this.#readErrors(example.allowed);
    this.#learnOutputs();
    for (let index = 0; index < values.length; index += 1) {
      const value = values[index] ?? 0;
      if (value !== 0) {
        this.#rows.descend((example.rows[index] ?? 0) * this.#rank, this.#hiddenError, value);
      }
    }
    for (let dimension = 0; dimension < example.meaning.length; dimension += 1) {
      this.#meaning.descend(dimension * this.#rank, this.#hiddenError, example.meaning[dimension] ?? 0);
    }
  }

  weights(): Pick<ModelWeights, "rows" | "rowScales" | "meaning" | "outputs" | "bias"> {
    return {
      ...quantisedRows(this.#rows.values, this.#rank),
      meaning: this.#meaning.values,
      outputs: this.#outputs.values,
      bias: this.#bias.values,
    };
  }

  #readHidden({ rows, meaning }: Example, values: Float32Array): void {
    this.#hidden.fill(0);
    for (let index = 0; index < values.length; index += 1) {
      this.#rows.addRow(this.#hidden, (rows[index] ?? 0) * this.#rank, values[index] ?? 0);
    }
    for (let dimension = 0; dimension < meaning.length; dimension += 1) {
      this.#meaning.addRow(this.#hidden, dimension * this.#rank, meaning[dimension] ?? 0);
    }
  }

  /** Leaves the errors of the classes in `#scores`: probability minus the share that the label asks for. */
  #readErrors(allowed: readonly number[]): void {
    const scores = this.#scores;
    let highest = Number.NEGATIVE_INFINITY;
    for (let index = 0; index < this.#classCount; index += 1) {
      const score = (this.#bias.values[index] ?? 0) + this.#outputs.product(index * this.#rank, this.#hidden);
      scores[index] = score;
      highest = Math.max(highest, score);
    }
    let sum = 0;
    for (let index = 0; index < this.#classCount; index += 1) {
      scores[index] = Math.exp((scores[index] ?? 0) - highest);
      sum += scores[index] ?? 0;
    }
    let allowedSum = 1e-30;
    for (const index of allowed) {
      allowedSum += scores[index] ?? 0;
    }
    for (let index = 0; index < this.#classCount; index += 1) {
      scores[index] = (scores[index] ?? 0) / sum;
    }
    for (const index of allowed) {
      scores[index] = (scores[index] ?? 0) * (1 - sum / allowedSum);
    }
  }

  #learnOutputs(): void {
    this.#hiddenError.fill(0);
    for (let index = 0; index < this.#classCount; index += 1) {
      const error = this.#scores[index] ?? 0;
      if (Math.abs(error) >= ERROR_MIN) {
        this.#outputs.addRow(this.#hiddenError, index * this.#rank, error);
        this.#outputs.descend(index * this.#rank, this.#hidden, error);
        this.#bias.descendOne(index, error);
      }
    }
  }
}

/** Turns names of classes into their indices. Many texts share one long list, so each list is read once. */
function indexReader(classes: readonly string[]) {
  const indexOf = new Map(classes.map((name, index) => [name, index]));
  const known = new Map<readonly string[], readonly number[]>();
  return (names: readonly string[]): readonly number[] => {
    const found = known.get(names) ?? names.map((name) => indexOf.get(name) ?? 0);
    known.set(names, found);
    return found;
  };
}

function frequentFeatures(read: readonly TextFeatures[], textsMin: number): Uint32Array {
  const texts = new Map<number, number>();
  for (const { sparse } of read) {
    for (const feature of sparse.keys()) {
      texts.set(feature, (texts.get(feature) ?? 0) + 1);
    }
  }
  return Uint32Array.from(
    [...texts].filter(([, count]) => count >= textsMin).map(([feature]) => feature),
  ).sort();
}

/** Rounds each row to bytes, in units of a 127th of its largest weight. */
function quantisedRows(rows: Float32Array, rank: number) {
  const rowScales = new Float32Array(rows.length / rank);
  rows.forEach((weight, at) => {
    const row = Math.floor(at / rank);
    rowScales[row] = Math.max(rowScales[row] ?? 0, Math.abs(weight) / 127);
  });
  return {
    rowScales,
    rows: Int8Array.from(rows, (weight, at) => Math.round(weight / (rowScales[Math.floor(at / rank)] || 1))),
  };
}

/** The file of a model, as decodeModel in the ad server reads it. */
export function encodeModel(weights: ModelWeights): Buffer {
  const { classes, fittedTo, rank, features, rows, rowScales, meaning, outputs, bias } = weights;
  const header = { classes, fittedTo, rank, features: features.length, dimensions: meaning.length / rank };
  const arrays = [features, rowScales, meaning, outputs, bias, rows].map(
    (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength),
  );
  return gzipSync(Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), ...arrays]), { level: 9 });
}
