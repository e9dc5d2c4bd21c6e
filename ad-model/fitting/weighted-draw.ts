/** Draws indices in proportion to their weights. The same seed, a whole number, gives the same draws. */
export class WeightedDraw {
  /** Sums of the weights up to each index. */
  readonly #sums: Float64Array;
  #state: number;

  constructor(weights: readonly number[], seed: number) {
    this.#state = (1 + Math.imul(seed, 2654435761)) >>> 0;
    let sum = 0;
    this.#sums = Float64Array.from(weights, (weight) => {
      sum += weight;
      return sum;
    });
  }

  /** The next index. */
  next(): number {
    const wanted = this.chance() * (this.#sums.at(-1) ?? 0);
    let [low, high] = [0, this.#sums.length - 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sums[middle] ?? 0) <= wanted) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /** The next number from 0 to 1, by Marsaglia's xorshift. */
  chance(): number {
    let state = this.#state;
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    this.#state = state >>> 0;
    return this.#state / 2 ** 32;
  }
}
