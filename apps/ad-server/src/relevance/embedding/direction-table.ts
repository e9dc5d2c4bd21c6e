/** Directions, row by row in one array: a prompt is compared with thousands of them. */
export class DirectionTable {
  readonly #rows: Float32Array;
  readonly #dimensions: number;

  constructor(directions: readonly Float32Array[], dimensions: number) {
    this.#dimensions = dimensions;
    this.#rows = new Float32Array(directions.length * dimensions);
    for (const [row, direction] of directions.entries()) {
      this.#rows.set(direction, row * dimensions);
    }
  }

  /** The cosine between a direction and each row, in their order. */
  cosines(direction: Float32Array): Float32Array {
    const cosines = new Float32Array(this.#rows.length / this.#dimensions);
    for (let row = 0; row < cosines.length; row += 1) {
      let sum = 0;
      const start = row * this.#dimensions;
      for (let dimension = 0; dimension < this.#dimensions; dimension += 1) {
        sum += (this.#rows[start + dimension] ?? 0) * (direction[dimension] ?? 0);
      }
      cosines[row] = sum;
    }
    return cosines;
  }
}
