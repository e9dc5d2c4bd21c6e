import type { BenchOptions } from "./options.mjs";

/** Where a run takes place. */
interface BenchPlace {
  /** For logs and for what processes keep; removed in the end. */
  readonly folder: string;
  /** Tells of progress. */
  readonly say: (line: string) => void;
}

/** One run of the benchmark. */
export interface Bench extends BenchOptions, BenchPlace {}

/** Before each timed round and not counted: code is compiled, connections are made. */
export const WARMUP_MS = 4000;
/** The same where the round has started its server. */
export const COLD_WARMUP_MS = 8000;

/**
 * Runs the sides of a comparison in turns: A, B, B, A …, so that what changes through a run does no side a favour; what
 * each gave, round by round.
 */
export async function inTurns<Side extends string, T>(
  rounds: number,
  sides: Readonly<Record<Side, (round: number) => Promise<T>>>,
): Promise<Readonly<Record<Side, readonly T[]>>> {
  const given = new Map<string, T[]>();
  for (let round = 0; round < rounds; round += 1) {
    const forward = Object.entries<(round: number) => Promise<T>>(sides);
    for (const [name, run] of round % 2 === 0 ? forward : forward.toReversed()) {
      given.set(name, [...(given.get(name) ?? []), await run(round)]);
    }
  }
  // The keys are those of `sides`: fromEntries knows them as strings alone.
  return Object.fromEntries(given) as Record<Side, T[]>;
}
