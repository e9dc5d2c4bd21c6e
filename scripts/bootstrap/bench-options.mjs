import { isWhole, readNumberOptions } from "./number-options.mjs";

/** The parts of `npm run bench`, in their order; bench/parts/ has a file for each. */
export const BENCH_PARTS = ["intake", "delivery", "injection", "redis", "growth", "processes"];

const NUMBERS = { rounds: { byDefault: 5, max: 100 }, seconds: { byDefault: 10, max: 600 } };
const DEFAULT_GROWTH = [100_000, 1_000_000];
const GROWTH_MAX = 10_000_000;

export const BENCH_HELP = `Usage: npm run bench -- [--only PART,...] [--rounds N] [--seconds N] [--growth N,...]
                            [--json] [--write] [--profile DIR]

Measures Adrelay beside the naive version of each of its parts, in turns within one run, and prints the medians of the
rounds, how far the rounds' ratios spread, and which promises hold. It has Redis servers and processes of
its own; everything is stopped and removed in the end.

  --only PART     of ${BENCH_PARTS.join(", ")} only these
  --rounds N      rounds of each comparison (default: ${NUMBERS.rounds.byDefault})
  --seconds N     length of a timed round; each has a warm-up before it (default: ${NUMBERS.seconds.byDefault}).
                  Deliveries take as long as a backlog for about so many seconds takes
  --growth N,...  sizes of the backlog for growth, beside an empty one (default: ${DEFAULT_GROWTH.join(",")})
  --json          print all figures as JSON, with those of each round, and progress on stderr
  --write         write the table into bench/results.md
  --profile DIR   leave a CPU profile of each gateway and worker there; it costs speed
  --help          this text

All of it takes about an hour; a million entries, and what intake adds, want some 12 GB of memory. Exit code: 0 if every
promise that was measured holds, 1 if not, 130 on Ctrl-C. bench/README.md tells how it measures.
`;

/** Pure: what a call of `npm run bench` asks for. */
export function readBenchOptions(parsed) {
  const numbers = readNumberOptions("bench", parsed, NUMBERS);
  if (numbers.kind !== "run") {
    return numbers;
  }
  const { values } = parsed;
  const faulty = (why) => ({ kind: "faulty", why });
  const only = values.only === undefined ? BENCH_PARTS : listOf(values.only);
  const unknown = only.find((part) => !BENCH_PARTS.includes(part));
  if (unknown !== undefined) {
    return faulty(`--only knows ${BENCH_PARTS.join(", ")}, not ${unknown}`);
  }
  const growth = values.growth === undefined ? DEFAULT_GROWTH : listOf(values.growth).map(Number);
  if (!growth.every((size) => isWhole(size, GROWTH_MAX))) {
    return faulty(`--growth wants whole numbers from 1 to ${GROWTH_MAX}, not ${values.growth}`);
  }
  return {
    kind: "run",
    parts: BENCH_PARTS.filter((part) => only.includes(part)),
    rounds: numbers.rounds,
    roundMs: numbers.seconds * 1000,
    growth: [...growth].sort((a, b) => a - b),
    isJson: values.json === true,
    isWritten: values.write === true,
    profileDir: values.profile,
  };
}

function listOf(text) {
  return text.split(",").map((word) => word.trim());
}
