/** The options of each command. They are checked here, before anything is fetched; the scripts parse them again. */
import { parseArgs } from "node:util";
import { BENCH_COMMAND } from "../../bench/options.mjs";
import { CHAOS_COMMAND } from "../../e2e/chaos/options.mjs";
import { FUZZ_COMMAND } from "../../e2e/fuzz/options.mjs";
import { OBSERVE_COMMAND } from "../../e2e/observe/options.mjs";
import { SOAK_COMMAND } from "../../e2e/soak-client/options.mjs";

/** @typedef {{ kind: "faulty", why: string }} Faulty */
/** @typedef {{ kind: "help" } | Faulty} NotRun */
/**
 * The options and words of a call. `words` has the words that belong to no option.
 * @typedef {{ texts: Readonly<Record<string, string | undefined>>, flags: ReadonlySet<string>, words: readonly string[] }} Words
 */
/**
 * How a command is called: `texts` are its options with a value, `flags` those without one.
 * @template {{ kind: "run" }} Options
 * @typedef {object} Command
 * @property {string} help
 * @property {readonly string[]} texts
 * @property {readonly string[]} flags
 * @property {boolean} [takesWords] Whether words that belong to no option are allowed.
 * @property {(words: Words) => Options | Faulty} read
 */
/** @typedef {"static" | "unit" | "integration" | "e2e"} TestStage */
/** @typedef {{ kind: "run", stages: readonly TestStage[], filters: readonly string[] }} TestOptions */
/** @typedef {{ kind: "run", port: number | undefined, hasDemo: boolean, modelUrl: string | undefined, anthropicUrl: string | undefined }} StartOptions */
/**
 * @typedef {{ kind: "run", command: string, args: readonly string[] } | { kind: "help", text: string }
 *   | { kind: "faulty", why: string, text: string }} Request
 */

/** The stages of a test run, in their order. @type {readonly TestStage[]} */
const TEST_STAGES = ["static", "unit", "integration", "e2e"];
const PORT_MAX = 65_535;
const EXIT_USAGE = 2;

/** @type {Command<StartOptions>} */
export const START_COMMAND = {
  help: `Usage: npm start -- [--port N] [--no-demo] [--model-url URL] [--anthropic-url URL]

Runs all of Adrelay on this machine until Ctrl-C: Redis, ad server, gateway, worker, model proxy, and
a demo model behind the proxy.
The first start fetches what is missing. Tools, data and keys are kept under .adrelay/ (data and
keys under ADRELAY_HOME, if it is set) and outlive a restart.

  --port N     port of the gateway (default: GATEWAY_PORT, or 8080)
  --no-demo    don't send the first injection, the first turn and their acknowledgments
  --model-url URL
               the model's server of the proxy for OpenAI's interface, with its /v1, such as
               https://api.openai.com/v1, in place of the demo model
  --anthropic-url URL
               the same for Anthropic's interface, without /v1, such as https://api.anthropic.com
  --help       this text

Settings come from the environment and from .env; .env.example lists them all. With PROVIDER_URL
and PROVIDER_API_KEY your own ad service is called, and the ad server isn't started.
`,
  texts: ["port", "model-url", "anthropic-url"],
  flags: ["no-demo"],
  read: ({ texts: { port: text, "model-url": modelUrl, "anthropic-url": anthropicUrl }, flags }) => {
    const port = text === undefined ? undefined : Number(text);
    if (port !== undefined && !(/^\d{1,5}$/.test(text ?? "") && port >= 1 && port <= PORT_MAX)) {
      return { kind: "faulty", why: `--port must be a whole number from 1 to ${PORT_MAX}, not ${text}` };
    }
    for (const [option, url] of Object.entries({
      "--model-url": modelUrl,
      "--anthropic-url": anthropicUrl,
    })) {
      if (url !== undefined && !/^https?:\/\/./.test(url)) {
        return { kind: "faulty", why: `${option} must be a URL with http or https, not ${url}` };
      }
    }
    return { kind: "run", port, hasDemo: !flags.has("no-demo"), modelUrl, anthropicUrl };
  },
};

/** @type {Command<TestOptions>} */
export const TEST_COMMAND = {
  help: `Usage: npm test -- [--only ${TEST_STAGES.join("|")}] [FILTER...]

Runs all checks: lint, types, unused code and advisories; unit tests; tests on a real Redis; tests with real processes.
The first run fetches what is missing and keeps it under .adrelay/. The last line counts the results.

  --only STAGE run only this stage
  FILTER       run only test files whose path contains one of these words
  --help       this text
`,
  texts: ["only"],
  flags: [],
  takesWords: true,
  read: ({ texts: { only }, words }) => {
    const stages = TEST_STAGES.filter((stage) => only === undefined || stage === only);
    return stages.length > 0
      ? { kind: "run", stages, filters: words }
      : { kind: "faulty", why: `--only must be one of ${TEST_STAGES.join(", ")}, not ${only}` };
  },
};

/** @type {ReadonlyMap<string, Command<{ kind: "run" }>>} */
const COMMANDS = new Map(
  Object.entries({
    start: START_COMMAND,
    test: TEST_COMMAND,
    chaos: CHAOS_COMMAND,
    fuzz: FUZZ_COMMAND,
    observe: OBSERVE_COMMAND,
    bench: BENCH_COMMAND,
    "soak-client": SOAK_COMMAND,
  }),
);
/** Commands that parse all their words themselves, --help too. */
const PASSED_ON = [
  "adrelay",
  "audit",
  "catalog",
  "eval-ads",
  "fit-ads",
  "pack-cli",
  "pack-client",
  "rules",
  "sbom",
];

const USAGE = `Usage: npm start -- [options]
       npm test -- [options]
       npm run chaos -- [options]
       npm run fuzz -- [options]
       npm run observe -- [options]
       npm run bench -- [options]
       npm run soak:client -- [options]
       npm run catalog -- lint [FILE]
       npm run eval:ads -- [FILE...]
       npm run fit:ads
       npm run rules -- --runbooks URL
       npm run audit
       npm run -s sbom
       npm run adrelay -- [command]
Each of them explains its options with --help.
`;

/**
 * Pure: which command a call means. Words are passed on unchanged.
 * @param {readonly string[]} words
 * @returns {Request}
 */
export function parseCommandLine([name, ...args]) {
  if (name === "--help" || name === "-h") {
    return { kind: "help", text: USAGE };
  }
  if (name === undefined) {
    return { kind: "faulty", why: "no command given", text: USAGE };
  }
  if (PASSED_ON.includes(name)) {
    return { kind: "run", command: name, args };
  }
  const command = COMMANDS.get(name);
  if (command === undefined) {
    return { kind: "faulty", why: `unknown command: ${name}`, text: USAGE };
  }
  const parsed = parseOptions(command, args);
  return parsed.kind === "run" ? { kind: "run", command: name, args } : { ...parsed, text: command.help };
}

/**
 * Pure: the options of one command.
 * @template {{ kind: "run" }} Options
 * @param {Command<Options>} command
 * @param {readonly string[]} args
 * @returns {Options | NotRun}
 */
export function parseOptions({ texts, flags, takesWords = false, read }, args) {
  if (args.includes("--help") || args.includes("-h")) {
    return { kind: "help" };
  }
  const words = parseWords(args, { texts, flags });
  if (words.kind === "faulty") {
    return words;
  }
  const [surplus] = takesWords ? [] : words.words;
  return surplus === undefined
    ? read(words)
    : { kind: "faulty", why: `unknown option or argument: ${surplus}` };
}

/**
 * The options of a script's own call. The bootstrap has already refused faulty ones and answered --help, so this ends the
 * process only if somebody calls the script without the bootstrap.
 * @template {{ kind: "run" }} Options
 * @param {string} name As the user calls it.
 * @param {Command<Options>} command
 * @returns {Options}
 */
export function optionsOrExit(name, command) {
  const parsed = parseOptions(command, process.argv.slice(2));
  switch (parsed.kind) {
    case "help":
      console.log(command.help);
      return process.exit(0);
    case "faulty":
      console.error(`${name}: ${parsed.why}\n\n${command.help}`);
      return process.exit(EXIT_USAGE);
    default:
      return parsed;
  }
}

/**
 * @param {readonly string[]} args
 * @param {{ texts: readonly string[], flags: readonly string[] }} names
 * @returns {({ kind: "words" } & Words) | Faulty}
 */
function parseWords(args, { texts, flags }) {
  /** @type {Record<string, { type: "string" | "boolean" }>} */
  const options = Object.fromEntries([
    ...texts.map((name) => [name, { type: "string" }]),
    ...flags.map((name) => [name, { type: "boolean" }]),
  ]);
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    /** @type {Record<string, string>} */
    const given = {};
    for (const [name, value] of Object.entries(values)) {
      if (typeof value === "string") {
        given[name] = value;
      }
    }
    const set = new Set(flags.filter((name) => values[name] === true));
    return { kind: "words", texts: given, flags: set, words: positionals };
  } catch (error) {
    // Node throws for an unknown option. Its message suits people, except for the advice at the end.
    const message = error instanceof Error ? error.message : String(error);
    return { kind: "faulty", why: message.split(". To specify")[0] ?? message };
  }
}
