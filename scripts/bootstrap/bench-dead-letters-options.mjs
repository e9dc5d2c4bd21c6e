import { readNumberOptions } from "./number-options.mjs";

const NUMBERS = {
  letters: { byDefault: 100_000, max: 10_000_000 },
  rate: { byDefault: 2000, max: 10_000 },
};

export const BENCH_DEAD_LETTERS_HELP = `Usage: npm run bench:dead-letters -- [--letters N] [--rate N]

Measures what an operator does with many dead letters, on a Redis, a gateway and a worker of its own: how long a page
takes, which Redis commands are the slowest, and a bulk replay whose worker is killed in the middle. Everything is stopped
and removed in the end.

  --letters N  dead letters (default: ${NUMBERS.letters.byDefault})
  --rate N     of them replayed a second (default: ${NUMBERS.rate.byDefault}, at most ${NUMBERS.rate.max})
  --help       this text

Takes four to seven minutes on two busy cores. Exit code: 0 if no letter got lost and the provider took none twice, 1 if
not, 130 on Ctrl-C.
`;

/** Pure: what a call of `npm run bench:dead-letters` asks for. */
export function readBenchDeadLettersOptions(parsed) {
  return readNumberOptions("bench:dead-letters", parsed, NUMBERS);
}
