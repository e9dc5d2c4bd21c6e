/** The parts of `npm run bench`, in their order; bench/parts/ has a file for each. */
export const BENCH_PARTS = ["intake", "delivery", "injection", "redis", "growth", "processes"];

const DEFAULT_ROUNDS = 5;
const DEFAULT_SECONDS = 10;
const DEFAULT_GROWTH = [100_000, 1_000_000];
const ROUNDS_MAX = 100;
const SECONDS_MAX = 600;
const GROWTH_MAX = 10_000_000;

export const BENCH_HELP = `Usage: npm run bench -- [--only PART,...] [--rounds N] [--seconds N] [--growth N,...]
                            [--json] [--write] [--profile DIR]

Measures Adrelay beside the naive version of each of its parts, in turns within one run, and prints the medians of the
rounds, how far the rounds' ratios spread, and which promises hold. It has Redis servers and processes of
its own; everything is stopped and removed in the end.

  --only PART     of ${BENCH_PARTS.join(", ")} only these
  --rounds N      rounds of each comparison (default: ${DEFAULT_ROUNDS})
  --seconds N     length of a timed round; each has a warm-up before it (default: ${DEFAULT_SECONDS}).
                  Deliveries take as long as a backlog for about so many seconds takes
  --growth N,...  sizes of the backlog for growth, beside an empty one (default: ${DEFAULT_GROWTH.join(",")})
  --json          print all figures as JSON, with those of each round, and progress on stderr
  --write         write the table into bench/results.md
  --profile DIR   leave a CPU profile of each gateway and worker there; it costs speed
  --help          this text

All of it takes about an hour; a million entries want 10 GB of memory. Exit code: 0 if every promise that was measured
holds, 1 if not, 130 on Ctrl-C. bench/README.md tells how it measures.
`;

/** Pure: what a call of `npm run bench` asks for. */
export function readBenchOptions({ values, words }) {
  const faulty = (why) => ({ kind: "faulty", why });
  const [word] = words;
  if (word !== undefined) {
    return faulty(`bench takes no ${word}`);
  }
  const only = values.only === undefined ? BENCH_PARTS : listOf(values.only);
  const unknown = only.find((part) => !BENCH_PARTS.includes(part));
  if (unknown !== undefined) {
    return faulty(`--only knows ${BENCH_PARTS.join(", ")}, not ${unknown}`);
  }
  const rounds = Number(values.rounds ?? DEFAULT_ROUNDS);
  if (!isWhole(rounds, ROUNDS_MAX)) {
    return faulty(`--rounds wants a whole number from 1 to ${ROUNDS_MAX}, not ${values.rounds}`);
  }
  const seconds = Number(values.seconds ?? DEFAULT_SECONDS);
  if (!isWhole(seconds, SECONDS_MAX)) {
    return faulty(`--seconds wants a whole number from 1 to ${SECONDS_MAX}, not ${values.seconds}`);
  }
  const growth = values.growth === undefined ? DEFAULT_GROWTH : listOf(values.growth).map(Number);
  if (!growth.every((size) => isWhole(size, GROWTH_MAX))) {
    return faulty(`--growth wants whole numbers from 1 to ${GROWTH_MAX}, not ${values.growth}`);
  }
  return {
    kind: "run",
    parts: BENCH_PARTS.filter((part) => only.includes(part)),
    rounds,
    roundMs: seconds * 1000,
    growth: [...growth].sort((a, b) => a - b),
    isJson: values.json === true,
    isWritten: values.write === true,
    profileDir: values.profile,
  };
}

function listOf(text) {
  return text.split(",").map((word) => word.trim());
}

function isWhole(value, max) {
  return Number.isInteger(value) && value >= 1 && value <= max;
}
