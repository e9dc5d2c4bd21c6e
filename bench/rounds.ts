import type { BenchOptions } from "./options.mjs";

/** The surroundings of a run. */
interface BenchPlace {
  /** For logs and files of the processes. It is removed in the end. */
  readonly folder: string;
  /** Prints progress. */
  readonly say: (line: string) => void;
}

/** One run of the benchmark. */
export interface Bench extends BenchOptions, BenchPlace {}

/** Runs before each timed round and is not counted: in it code is compiled and connections are opened. */
export const WARMUP_MS = 4000;
/** The same for a round that has just started its server. */
export const COLD_WARMUP_MS = 8000;

/**
 * Runs the sides of a comparison in turns: A, B, B, A …. So a change during the run favours no side. Returns the results
 * of each side, round by round.
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
  // The keys are those of `sides`, but the type of fromEntries only knows strings.
  return Object.fromEntries(given) as Record<Side, T[]>;
}
