/** Smaller sums of squares would make the first steps too large. */
const SQUARES_START = 1e-4;

/** An array of weights that is fitted by AdaGrad: the more often a weight has moved, the smaller its steps become. */
export class Adagrad {
  readonly values: Float32Array;
  /** The share of the learning rate that is in force, from 0 to 1. */
  rateShare = 1;
  readonly #squares: Float32Array;
  readonly #learningRate: number;
  readonly #decay: number;

  /** The weights start at fixed pseudo-random values between `-spread` and `spread`. */
  constructor(
    size: number,
    { learningRate, decay, spread }: { learningRate: number; decay: number; spread: number },
  ) {
    this.#learningRate = learningRate;
    this.#decay = decay;
    this.#squares = new Float32Array(size).fill(SQUARES_START);
    let state = size >>> 0;
    this.values = Float32Array.from({ length: size }, () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return spread * (state / 2 ** 31 - 1);
    });
  }

  /** Adds `factor` times the row that begins at `start` to a vector. */
  addRow(sum: Float32Array, start: number, factor: number): void {
    const { values } = this;
    for (let index = 0; index < sum.length; index += 1) {
      sum[index] = (sum[index] ?? 0) + factor * (values[start + index] ?? 0);
    }
  }

  /** The product of the row that begins at `start` with a vector. */
  product(start: number, vector: Float32Array): number {
    const { values } = this;
    let sum = 0;
    for (let index = 0; index < vector.length; index += 1) {
      sum += (values[start + index] ?? 0) * (vector[index] ?? 0);
    }
    return sum;
  }

  /** Moves the row that begins at `start` against the gradient `factor × errors`. */
  descend(start: number, errors: Float32Array, factor: number): void {
    const rate = this.#learningRate * this.rateShare;
    const values = this.values;
    const squares = this.#squares;
    const decay = this.#decay;
    for (let index = 0; index < errors.length; index += 1) {
      const at = start + index;
      const value = values[at] ?? 0;
      const gradient = factor * (errors[index] ?? 0) + decay * value;
      const square = (squares[at] ?? 0) + gradient * gradient;
      squares[at] = square;
      values[at] = value - (rate * gradient) / Math.sqrt(square);
    }
  }

  /** Moves one weight against its gradient. */
  descendOne(at: number, gradient: number): void {
    const square = (this.#squares[at] ?? 0) + gradient * gradient;
    this.#squares[at] = square;
    this.values[at] =
      (this.values[at] ?? 0) - (this.#learningRate * this.rateShare * gradient) / Math.sqrt(square);
  }
}
