/** The command line as a whole: its commands, its parser and the parser's error texts. docs/cli.md is made from it. */
import yargs, { type Argv } from "yargs";
import manifest from "../package.json" with { type: "json" };
import { type AddTo, addGlobals, GLOBAL_OPTIONS, type Start } from "./command.ts";
import { addDeadDiscard, addDeadReplay, addDeadShow } from "./dead-letters.ts";
import { addQueuedDiscard } from "./discard-in-bulk.ts";
import { addAllDiscards } from "./discards.ts";
import { addErase } from "./erase.ts";
import { EXIT_MEANINGS, UsageError } from "./exit-codes.ts";
import { addDeadList, addQueuedList } from "./lists.ts";
import { addAudit, addLookup } from "./lookup-and-audit.ts";
import { addProviderCheck } from "./provider-check/command.ts";
import { addPublishersAdopt } from "./publishers/adopt.ts";
import { addPublishersCheck } from "./publishers/check.ts";
import { addPublishersHashKey } from "./publishers/hash-key.ts";
import { addPublishersLint } from "./publishers/lint.ts";
import { addPublishersList } from "./publishers/list.ts";
import { addAllReplays } from "./replays.ts";
import { addDoctor, addStatus } from "./status-and-doctor.ts";

/** Commands of two words, by their first word. */
const GROUPS = {
  dead: {
    describe: "Lists, shows, replays or discards dead letters",
    commands: [addDeadList, addDeadShow, addDeadReplay, addDeadDiscard],
  },
  queued: {
    describe: "Lists or discards acknowledgments that are still being delivered",
    commands: [addQueuedList, addQueuedDiscard],
  },
  replays: {
    describe: "Lists, shows or cancels bulk replays",
    commands: addAllReplays,
  },
  discards: {
    describe: "Lists, shows or cancels bulk discards",
    commands: addAllDiscards,
  },
  provider: {
    describe: "Checks an ad service",
    commands: [addProviderCheck],
  },
  publishers: {
    describe: "Lists and checks publishers and their keys, or gives what one left to another",
    commands: [
      addPublishersList,
      addPublishersCheck,
      addPublishersLint,
      addPublishersHashKey,
      addPublishersAdopt,
    ],
  },
} as const;

/** The words of every command, for the documentation. */
export const COMMAND_PATHS = [
  ["status"],
  ["dead", "list"],
  ["dead", "show"],
  ["dead", "replay"],
  ["dead", "discard"],
  ["queued", "list"],
  ["queued", "discard"],
  ["replays", "list"],
  ["replays", "show"],
  ["replays", "cancel"],
  ["discards", "list"],
  ["discards", "show"],
  ["discards", "cancel"],
  ["provider", "check"],
  ["publishers", "list"],
  ["publishers", "check"],
  ["publishers", "lint"],
  ["publishers", "hash-key"],
  ["publishers", "adopt"],
  ["erase"],
  ["lookup"],
  ["audit"],
  ["doctor"],
] as const;

/** The words that can follow a first word, or the first words themselves. */
function wordsAfter(word?: string): string {
  const depth = word === undefined ? 0 : 1;
  const paths = COMMAND_PATHS.filter(([first]) => word === undefined || first === word);
  return [...new Set(paths.map((path) => path[depth]))].join(", ");
}

/** The help of a command, for the documentation. */
export async function renderHelp(words: readonly string[]): Promise<string> {
  const result = await runCommandLine([...words, "--help"], () => Promise.resolve());
  return result.kind === "text" ? result.text : "";
}

/** Help is at most as wide as this and as the terminal. */
const HELP_COLUMNS_MAX = 100;

/** The result of parsing a command line. For `ran`, the command has already run. */
export type ParseResult =
  | { readonly kind: "ran" }
  /** Help, the version or a completion. */
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "faulty"; readonly why: string };

/** Parses a command line and runs the command in it. */
export async function runCommandLine(
  words: readonly string[],
  start: Start,
  columns = HELP_COLUMNS_MAX,
): Promise<ParseResult> {
  let text = "";
  try {
    await createParser(start)
      .wrap(Math.min(columns, HELP_COLUMNS_MAX))
      .parseAsync([...words], {}, (_error, _args, output) => {
        text = output;
      });
    return text === "" ? { kind: "ran" } : { kind: "text", text };
  } catch (error) {
    if (error instanceof UsageError) {
      return { kind: "faulty", why: error.message };
    }
    throw error;
  }
}

function createParser(start: Start): Argv<object> {
  const base = yargs().scriptName("adrelay").locale("en").updateStrings(Object(PARSER_TEXTS));
  const root = addGlobals(base.exitProcess(false));
  const add = (parser: Argv<object>, addTo: AddTo) => addTo(parser, start);
  const top = [addErase, addLookup, addAudit, addDoctor];
  const withGroups = Object.entries(GROUPS).reduce(
    (parser, [word, { describe, commands }]) =>
      parser.command(word, describe, (inner: Argv<object>) =>
        commands.reduce(add, inner).demandCommand(1, `name a command of ${word}: ${wordsAfter(word)}`),
      ),
    add(root, addStatus),
  );
  return top
    .reduce(add, withGroups)
    .completion(
      "completion",
      "Prints a completion script for the shell: add its output to ~/.bashrc or ~/.zshrc",
    )
    .usage("$0 <command>: operates an Adrelay relay through the admin API of its gateway.")
    .demandCommand(1, `name a command: ${wordsAfter()}, completion`)
    .recommendCommands()
    .strict()
    .version(manifest.version)
    .help()
    .alias("help", "h")
    .epilogue(epilogue())
    .check(checkOnce)
    .group([...GLOBAL_OPTIONS, "version", "help"], "Options of every command:")
    .fail((message, error) => {
      throw isUsageFault(error) ? new UsageError(error?.message ?? message) : error;
    });
}

function epilogue(): string {
  const codes = Object.entries(EXIT_MEANINGS).map(([code, meaning]) => `  ${code.padEnd(4)} ${meaning}`);
  return ["Exit codes:", ...codes].join("\n");
}

/** Replacements for error texts of yargs. */
const PARSER_TEXTS = {
  "Missing required argument: %s": sameForAll("--%s is missing"),
  "Unknown argument: %s": sameForAll("unknown argument: %s"),
  "Not enough arguments following: %s": "--%s needs a value",
} as const;

/** The same text for the singular and the plural. */
function sameForAll(text: string): { readonly one: string; readonly other: string } {
  return { one: text, other: text };
}

/** yargs reports its own faults as a message without an error. It wraps what our checks of values throw in a YError. */
function isUsageFault(error: Error | undefined): boolean {
  return error === undefined || error instanceof UsageError || error.name === "YError";
}

/** yargs turns an option that was given twice into a list. Only the ids may be a list. */
function checkOnce(args: Readonly<Record<string, unknown>>): true {
  const twice = Object.entries(args).find(
    ([name, value]) => Array.isArray(value) && name !== "_" && name !== "ids",
  );
  if (twice !== undefined) {
    throw new UsageError(`--${twice[0]} was given more than once`);
  }
  return true;
}
