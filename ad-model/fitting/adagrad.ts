/** Smaller sums of squares would make the first steps too large. */
const SQUARES_START = 1e-4;

/**
 * Rows of weights that are fitted by AdaGrad: the more a row has moved, the smaller its steps become. A row has one sum of
 * squares for all of its weights, which takes half the time of one sum for each and fits as well.
 */
export class Adagrad {
  /** Row by row. */
  readonly values: Float32Array;
  /** The share of the learning rate that is in force, from 0 to 1. */
  rateShare = 1;
  readonly #rowSize: number;
  readonly #squares: Float32Array;
  readonly #learningRate: number;
  readonly #decay: number;

  /** The weights start at pseudo-random values between `-spread` and `spread`: other ones for each seed, a whole number. */
  constructor(
    { rows, rowSize }: { rows: number; rowSize: number },
    {
      learningRate,
      decay,
      spread,
      seed,
    }: { learningRate: number; decay: number; spread: number; seed: number },
  ) {
    this.#rowSize = rowSize;
    this.#learningRate = learningRate;
    this.#decay = decay;
    this.#squares = new Float32Array(rows).fill(SQUARES_START);
    const size = rows * rowSize;
    let state = (size + Math.imul(seed, 7919)) >>> 0;
    this.values = new Float32Array(size);
    for (let at = 0; at < size; at += 1) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      this.values[at] = spread * (state / 2 ** 31 - 1);
    }
  }

  /** Adds `factor` times a row to a vector. */
  addRow(sum: Float32Array, row: number, factor: number): void {
    const { values } = this;
    const start = row * this.#rowSize;
    for (let index = 0; index < sum.length; index += 1) {
      sum[index] = (sum[index] ?? 0) + factor * (values[start + index] ?? 0);
    }
  }

  /** The product of a row with a vector. */
  product(row: number, vector: Float32Array): number {
    const { values } = this;
    const start = row * this.#rowSize;
    let sum = 0;
    for (let index = 0; index < vector.length; index += 1) {
      sum += (values[start + index] ?? 0) * (vector[index] ?? 0);
    }
    return sum;
  }

  /**
   * Moves a row against the gradient `factor × errors`.
   *
   * @param meanSquare of the errors, which many rows share
   */
  descend(row: number, errors: Float32Array, meanSquare: number, factor: number): void {
    const { values } = this;
    const start = row * this.#rowSize;
    const square = (this.#squares[row] ?? 0) + factor * factor * meanSquare;
    this.#squares[row] = square;
    const rate = (this.#learningRate * this.rateShare) / Math.sqrt(square);
    const kept = 1 - rate * this.#decay;
    const step = rate * factor;
    for (let index = 0; index < errors.length; index += 1) {
      const at = start + index;
      values[at] = kept * (values[at] ?? 0) - step * (errors[index] ?? 0);
    }
  }
}

/** The mean of the squares of a vector's numbers. */
export function meanSquareOf(vector: Float32Array): number {
  let sum = 0;
  for (let index = 0; index < vector.length; index += 1) {
    sum += (vector[index] ?? 0) ** 2;
  }
  return sum / vector.length;
}
