import { parseArgs } from "node:util";
import { BENCH_HELP, readBenchOptions } from "./bench-options.mjs";
import { CHAOS_HELP, readChaosOptions } from "./chaos-options.mjs";
import { OBSERVE_HELP, readObserveOptions } from "./observe-options.mjs";

/** The stages of a test run, in their order. */
const TEST_STAGES = ["static", "unit", "integration", "e2e"];
const PORT_MAX = 65_535;

const USAGE =
  "Usage: npm start -- [options], npm test -- [options], npm run chaos -- [options], npm run observe -- [options], npm run bench -- [options], npm run catalog -- lint [FILE], npm run eval:ads -- [FILE...], npm run fit:ads, or npm run adrelay -- [command]; --help tells more.\n";
/** Commands that read all their words themselves, --help too. */
const PASSED_ON = ["adrelay", "catalog", "eval-ads", "fit-ads", "pack-cli"];
const HELP = {
  start: `Usage: npm start -- [--port N] [--no-demo]

Runs the whole of Adrelay on this machine until Ctrl-C: Redis, ad server, gateway, worker.
What it needs is fetched the first time. That, the data and the keys are kept under .adrelay/.

  --port N     port of the gateway (default: GATEWAY_PORT, or 8080)
  --no-demo    don't send the first injection and acknowledgment
  --help       this text

Settings come from the environment and from .env; .env.example lists them all.
`,
  test: `Usage: npm test -- [--only ${TEST_STAGES.join("|")}] [FILTER...]

Runs every check: lint and types, unit tests, tests on a real Redis, tests with real processes.
What it needs is fetched the first time, and kept under .adrelay/. The last line counts the outcome.

  --only STAGE one stage alone
  FILTER       only test files whose path contains one of these words
  --help       this text
`,
  chaos: CHAOS_HELP,
  observe: OBSERVE_HELP,
  bench: BENCH_HELP,
};
const PARSERS = {
  start: parseStartOptions,
  test: parseTestOptions,
  chaos: parseChaosOptions,
  observe: parseObserveOptions,
  bench: parseBenchOptions,
};

/**
 * Pure: what a command line asks for. Options of those that have a parser here are checked before anything is fetched;
 * the scripts get them as they are.
 */
export function parseCommandLine([command, ...args]) {
  if (PASSED_ON.includes(command)) {
    return { kind: "run", command, args };
  }
  if (command === "--help" || command === "-h") {
    return { kind: "help", text: USAGE };
  }
  if (!Object.hasOwn(PARSERS, command ?? "")) {
    const why = command === undefined ? "no command given" : `unknown command: ${command}`;
    return { kind: "faulty", why, text: USAGE };
  }
  const parsed = PARSERS[command](args);
  return parsed.kind === "run" ? { kind: "run", command, args } : { ...parsed, text: HELP[command] };
}

function parseStartOptions(args) {
  const parsed = parse(args, { port: { type: "string" }, "no-demo": { type: "boolean" } });
  if (parsed.kind !== "run") {
    return parsed;
  }
  const { port } = parsed.values;
  const isPort = /^\d{1,5}$/.test(port ?? "1") && Number(port ?? 1) >= 1 && Number(port ?? 1) <= PORT_MAX;
  if (!isPort) {
    return { kind: "faulty", why: `--port wants a number from 1 to ${PORT_MAX}, not ${port}` };
  }
  const [word] = parsed.words;
  return word === undefined ? { kind: "run" } : { kind: "faulty", why: `start takes no ${word}` };
}

/** Pure: which stages to run, and the words to choose test files by. */
export function parseTestOptions(args) {
  const parsed = parse(args, { only: { type: "string" } });
  if (parsed.kind !== "run") {
    return parsed;
  }
  const { only } = parsed.values;
  const stages = TEST_STAGES.filter((stage) => only === undefined || stage === only);
  return stages.length > 0
    ? { kind: "run", stages, filters: parsed.words }
    : { kind: "faulty", why: `--only wants one of ${TEST_STAGES.join(", ")}, not ${only}` };
}

/** Pure: how long, which seeds and which faults. */
export function parseChaosOptions(args, seedDefault = 0) {
  const text = { type: "string" };
  const options = { minutes: text, seconds: text, seed: text, seeds: text, faults: text, logs: text };
  const parsed = parse(args, { ...options, plan: { type: "boolean" } });
  return parsed.kind === "run" ? readChaosOptions(parsed, seedDefault) : parsed;
}

/** Pure: how long, and whether it goes on after that. */
export function parseObserveOptions(args) {
  const parsed = parse(args, { seconds: { type: "string" }, keep: { type: "boolean" } });
  return parsed.kind === "run" ? readObserveOptions(parsed) : parsed;
}

/** Pure: which parts, how many rounds of what length, and where the figures go. */
export function parseBenchOptions(args) {
  const text = { type: "string" };
  const flag = { type: "boolean" };
  const options = {
    only: text,
    rounds: text,
    seconds: text,
    growth: text,
    profile: text,
    json: flag,
    write: flag,
  };
  const parsed = parse(args, options);
  return parsed.kind === "run" ? readBenchOptions(parsed) : parsed;
}

/** Node's parser throws for an unknown option, with a message fit for people. */
function parse(args, options) {
  if (args.includes("--help") || args.includes("-h")) {
    return { kind: "help" };
  }
  try {
    const { values, positionals: words } = parseArgs({ args: [...args], options, allowPositionals: true });
    return { kind: "run", values, words };
  } catch (error) {
    return { kind: "faulty", why: error.message.split(". To specify")[0] };
  }
}
