/** What is known of one case, and whether it turned out true. */
export interface RegressedCase {
  /** The first is 1, whose weight isn't pulled towards 0. */
  readonly terms: readonly number[];
  readonly isTrue: boolean;
}

const STEPS_MAX = 50;
/** Pulls the weights towards 0 a little, so that they stay finite if the cases can be parted without an error. */
const PULL = 0.5;
const CHANGE_MIN = 1e-9;

/** Fits weights so that the probabilities of the cases are likeliest, by Newton's method. */
export function fitWeights(cases: readonly RegressedCase[]): number[] {
  const size = cases[0]?.terms.length ?? 0;
  let weights = Array.from({ length: size }, () => 0);
  for (let step = 0; step < STEPS_MAX; step += 1) {
    const change = newtonStep(cases, weights);
    weights = weights.map((weight, index) => weight + (change[index] ?? 0));
    if (change.every((part) => Math.abs(part) < CHANGE_MIN)) {
      break;
    }
  }
  return weights;
}

function newtonStep(cases: readonly RegressedCase[], weights: readonly number[]): number[] {
  const pulls = weights.map((_, index): number => (index === 0 ? 0 : PULL));
  const slope = weights.map((weight, index) => -(pulls[index] ?? 0) * weight);
  const bend = weights.map((_, row) =>
    weights.map((_weight, column) => (row === column ? (pulls[row] ?? 0) : 0)),
  );
  for (const { terms, isTrue } of cases) {
    const score = terms.reduce((sum, term, index) => sum + term * (weights[index] ?? 0), 0);
    const probability = 1 / (1 + Math.exp(-score));
    for (const [row, term] of terms.entries()) {
      slope[row] = (slope[row] ?? 0) + ((isTrue ? 1 : 0) - probability) * term;
      for (const [column, other] of terms.entries()) {
        const bends = bend[row] ?? [];
        bends[column] = (bends[column] ?? 0) + probability * (1 - probability) * term * other;
      }
    }
  }
  return solve(bend, slope);
}

/** Solves a system of linear equations by elimination. */
function solve(matrix: readonly (readonly number[])[], right: readonly number[]): number[] {
  const rows = matrix.map((row, index) => [...row, right[index] ?? 0]);
  for (let pivot = 0; pivot < rows.length; pivot += 1) {
    const best = rows
      .slice(pivot)
      .reduce((one, other) => (sizeAt(other, pivot) > sizeAt(one, pivot) ? other : one));
    const at = rows.indexOf(best);
    [rows[pivot], rows[at]] = [best, rows[pivot] ?? best];
    for (const [index, row] of rows.entries()) {
      const factor = index === pivot ? 0 : (row[pivot] ?? 0) / (best[pivot] ?? 1);
      rows[index] = row.map((value, column) => value - factor * (best[column] ?? 0));
    }
  }
  return rows.map((row, index) => (row.at(-1) ?? 0) / (row[index] ?? 1));
}

const sizeAt = (row: readonly number[], column: number) => Math.abs(row[column] ?? 0);
