/** The options of `npm run bench`. JavaScript, because the bootstrap reads them on any Node from 18 on. */

/** The parts of the benchmark in their order. Each has a file in bench/parts/. */
export const BENCH_PARTS = /** @type {const} */ ([
  "intake",
  "delivery",
  "turns",
  "injection",
  "proxy",
  "redis",
  "growth",
  "processes",
  "abuse",
]);

/** @typedef {(typeof BENCH_PARTS)[number]} BenchPart */

/**
 * @typedef {object} BenchOptions
 * @property {"run"} kind
 * @property {readonly BenchPart[]} parts
 * @property {number} rounds Rounds of each comparison.
 * @property {number} roundMs Length of a timed round, without its warm-up.
 * @property {readonly number[]} growth Sizes of the backlog, ascending. An empty backlog is measured besides.
 * @property {boolean} hasPeers Whether other gateways for models are measured, too.
 * @property {boolean} isJson
 * @property {boolean} isWritten Whether the table is written into bench/results.md.
 * @property {string | undefined} profileDir Where gateways, proxies and workers leave CPU profiles, if anywhere.
 */

const ROUNDS_DEFAULT = 5;
const ROUNDS_MAX = 100;
const SECONDS_DEFAULT = 10;
const SECONDS_MAX = 600;
const GROWTH_DEFAULT = [100_000, 1_000_000];
const GROWTH_MAX = 10_000_000;

const help = `Usage: npm run bench -- [--only PART,...] [--rounds N] [--seconds N] [--growth N,...]
                            [--peers] [--json] [--write] [--profile DIR]

Measures each part of Adrelay beside a naive version of it, in turns within one run. Prints the medians of the rounds,
the spread of the rounds' ratios, and which promises hold. It starts its own Redis servers and processes; in the end it
stops and removes everything.

  --only PART     only these parts: ${BENCH_PARTS.join(", ")}
  --rounds N      rounds of each comparison (default: ${ROUNDS_DEFAULT})
  --seconds N     length of a timed round; a warm-up comes before each (default: ${SECONDS_DEFAULT}).
                  A round of deliveries takes as long as its backlog, which is sized for about N seconds
  --growth N,...  sizes of the backlog for growth, compared with an empty one (default: ${GROWTH_DEFAULT.join(",")})
  --peers         in the part proxy, also measure other gateways for models; they are fetched from npm and PyPI into
                  .adrelay/peers, at fixed versions. LiteLLM needs a Python from 3.10 on
  --json          print all figures of each round as JSON, and progress on stderr
  --write         write the table into bench/results.md
  --profile DIR   write a CPU profile of each gateway, proxy and worker into DIR; profiling costs speed
  --help          this text

All parts take about an hour. A million entries and the acknowledgments of intake need some 12 GB of memory. Exit code:
0 if every measured promise holds, 1 if not, 130 on Ctrl-C. bench/README.md explains how it measures.
`;

/** How `npm run bench` is called. */
export const BENCH_COMMAND = {
  help,
  texts: ["only", "rounds", "seconds", "growth", "profile"],
  flags: ["peers", "json", "write"],
  read,
};

/**
 * @param {{ texts: Readonly<Record<string, string | undefined>>, flags: ReadonlySet<string> }} parsed
 * @returns {BenchOptions | { kind: "faulty", why: string }}
 */
function read({ texts, flags }) {
  const { only: onlyText, rounds: roundsText, seconds: secondsText, growth: growthText, profile } = texts;
  const rounds = Number(roundsText ?? ROUNDS_DEFAULT);
  if (!isWhole(rounds, ROUNDS_MAX)) {
    return faulty(`--rounds must be a whole number from 1 to ${ROUNDS_MAX}, not ${roundsText}`);
  }
  const seconds = Number(secondsText ?? SECONDS_DEFAULT);
  if (!isWhole(seconds, SECONDS_MAX)) {
    return faulty(`--seconds must be a whole number from 1 to ${SECONDS_MAX}, not ${secondsText}`);
  }
  /** @type {readonly string[]} */
  const only = onlyText === undefined ? BENCH_PARTS : listOf(onlyText);
  const unknown = only.find((word) => !BENCH_PARTS.some((part) => part === word));
  if (unknown !== undefined) {
    return faulty(`--only must name parts from ${BENCH_PARTS.join(", ")}, not ${unknown}`);
  }
  const growth = growthText === undefined ? GROWTH_DEFAULT : listOf(growthText).map(Number);
  if (!growth.every((size) => isWhole(size, GROWTH_MAX))) {
    return faulty(`--growth must be whole numbers from 1 to ${GROWTH_MAX}, not ${growthText}`);
  }
  return {
    kind: "run",
    parts: BENCH_PARTS.filter((part) => only.includes(part)),
    rounds,
    roundMs: seconds * 1000,
    growth: [...growth].sort((a, b) => a - b),
    hasPeers: flags.has("peers"),
    isJson: flags.has("json"),
    isWritten: flags.has("write"),
    profileDir: profile,
  };
}

/** @param {string} why @returns {{ kind: "faulty", why: string }} */
function faulty(why) {
  return { kind: "faulty", why };
}

/** @param {number} value @param {number} max */
function isWhole(value, max) {
  return Number.isInteger(value) && value >= 1 && value <= max;
}

/** @param {string} text */
function listOf(text) {
  return text.split(",").map((word) => word.trim());
}
