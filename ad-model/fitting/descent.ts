import { Adagrad, meanSquareOf } from "./adagrad.ts";
import type { SoftLabel } from "./soft-labels.ts";

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
  /** A whole number. Fits of other seeds start at other weights and draw other texts. */
  readonly seed: number;
}

/** Smaller errors have no effect on the weights; leaving them out saves most of the time. */
const ERROR_MIN = 1e-4;
/** What the soft label of a text weighs; its own label weighs the rest. Chosen on the development sets. */
const SOFT_SHARE = 0.7;
/** A bias is a row of one weight, whose gradient is the error itself. */
const ONE = Float32Array.of(1);

/** A text as the fit reads it. */
export interface Example {
  /** Rows of the features, with their values. */
  readonly rows: Uint32Array;
  readonly values: Float32Array;
  readonly meaning: Float32Array;
  /** Indices of the classes that the label allows. */
  readonly allowed: readonly number[];
  readonly softLabel?: SoftLabel | undefined;
}

/** How many of each there are. */
interface Shape {
  readonly features: number;
  readonly classes: number;
  readonly dimensions: number;
}

/** The weights of a model while they are fitted. */
export class Descent {
  readonly #dropout: number;
  readonly #classCount: number;
  readonly #rows: Adagrad;
  readonly #meaning: Adagrad;
  /** One row a class. */
  readonly #outputs: Adagrad;
  readonly #bias: Adagrad;
  readonly #hidden: Float32Array;
  readonly #hiddenError: Float32Array;
  /** Scores of the classes, then their probabilities, then their errors. */
  readonly #scores: Float32Array;

  constructor(
    { features, classes, dimensions }: Shape,
    { rank, learningRate, decay, dropout, seed }: FitOptions,
  ) {
    const weights = (rows: number, spread: number) =>
      new Adagrad({ rows, rowSize: rank }, { learningRate, decay, spread, seed });
    this.#dropout = dropout;
    this.#classCount = classes;
    this.#rows = weights(features, 0);
    this.#meaning = weights(dimensions, 0.15);
    this.#outputs = weights(classes, 0.3);
    this.#bias = new Adagrad({ rows: classes, rowSize: 1 }, { learningRate, decay: 0, spread: 0, seed });
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

  /** @param chance gives the next random number from 0 to 1 */
  step(example: Example, chance: () => number): void {
    const kept = 1 - this.#dropout;
    const values = example.values.map((value) => (chance() < this.#dropout ? 0 : value / kept));
    this.#readHidden(example, values);
    this.#readProbabilities();
    this.#subtractLabel(example);
    this.#learnOutputs();
    this.#learnInputs(example, values);
  }

  weights(): Record<"rows" | "meaning" | "outputs" | "bias", Float32Array> {
    return {
      rows: this.#rows.values,
      meaning: this.#meaning.values,
      outputs: this.#outputs.values,
      bias: this.#bias.values,
    };
  }

  #readHidden({ rows, meaning }: Example, values: Float32Array): void {
    this.#hidden.fill(0);
    for (let index = 0; index < values.length; index += 1) {
      const value = values[index] ?? 0;
      if (value !== 0) {
        this.#rows.addRow(this.#hidden, rows[index] ?? 0, value);
      }
    }
    for (let dimension = 0; dimension < meaning.length; dimension += 1) {
      this.#meaning.addRow(this.#hidden, dimension, meaning[dimension] ?? 0);
    }
  }

  #readProbabilities(): void {
    const scores = this.#scores;
    let highest = Number.NEGATIVE_INFINITY;
    for (let index = 0; index < this.#classCount; index += 1) {
      const score = (this.#bias.values[index] ?? 0) + this.#outputs.product(index, this.#hidden);
      scores[index] = score;
      highest = Math.max(highest, score);
    }
    let sum = 0;
    for (let index = 0; index < this.#classCount; index += 1) {
      scores[index] = Math.exp((scores[index] ?? 0) - highest);
      sum += scores[index] ?? 0;
    }
    for (let index = 0; index < this.#classCount; index += 1) {
      scores[index] = (scores[index] ?? 0) / sum;
    }
  }

  /** Subtracts from the probabilities what the label and the soft label ask for. */
  #subtractLabel({ allowed, softLabel }: Example): void {
    const scores = this.#scores;
    let allowedSum = 1e-30;
    for (const index of allowed) {
      allowedSum += scores[index] ?? 0;
    }
    const hardShare = softLabel === undefined ? 1 : 1 - SOFT_SHARE;
    for (const index of allowed) {
      scores[index] = (scores[index] ?? 0) * (1 - hardShare / allowedSum);
    }
    softLabel?.classes.forEach((index, at) => {
      scores[index] = (scores[index] ?? 0) - SOFT_SHARE * (softLabel.probabilities[at] ?? 0);
    });
  }

  #learnOutputs(): void {
    const meanSquare = meanSquareOf(this.#hidden);
    this.#hiddenError.fill(0);
    for (let index = 0; index < this.#classCount; index += 1) {
      const error = this.#scores[index] ?? 0;
      if (Math.abs(error) >= ERROR_MIN) {
        this.#outputs.addRow(this.#hiddenError, index, error);
        this.#outputs.descend(index, this.#hidden, meanSquare, error);
        this.#bias.descend(index, ONE, 1, error);
      }
    }
  }

  #learnInputs({ rows, meaning }: Example, values: Float32Array): void {
    const error = this.#hiddenError;
    const meanSquare = meanSquareOf(error);
    for (let index = 0; index < values.length; index += 1) {
      const value = values[index] ?? 0;
      if (value !== 0) {
        this.#rows.descend(rows[index] ?? 0, error, meanSquare, value);
      }
    }
    for (let dimension = 0; dimension < meaning.length; dimension += 1) {
      this.#meaning.descend(dimension, error, meanSquare, meaning[dimension] ?? 0);
    }
  }
}
