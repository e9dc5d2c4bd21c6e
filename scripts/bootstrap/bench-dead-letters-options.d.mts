export interface BenchDeadLettersOptions {
  readonly kind: "run";
  /** How many dead letters. */
  readonly letters: number;
  /** How many of them are replayed a second. */
  readonly rate: number;
}

export declare const BENCH_DEAD_LETTERS_HELP: string;
