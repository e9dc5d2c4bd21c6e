export type BenchPart = "intake" | "delivery" | "injection" | "redis" | "growth" | "processes";

export interface BenchOptions {
  readonly kind: "run";
  readonly parts: readonly BenchPart[];
  /** Rounds of each comparison. */
  readonly rounds: number;
  /** Length of a timed round, without its warm-up. */
  readonly roundMs: number;
  /** Sizes of the backlog, ascending, beside an empty one. */
  readonly growth: readonly number[];
  readonly isJson: boolean;
  /** Whether the table goes into bench/results.md. */
  readonly isWritten: boolean;
  /** Where CPU profiles of gateways and workers are left, if anywhere. */
  readonly profileDir: string | undefined;
}

export declare const BENCH_PARTS: readonly BenchPart[];
export declare const BENCH_HELP: string;
