/** The command line as a whole; docs/cli.md is made from it. */
import yargs, { type Argv } from "yargs";
import manifest from "../package.json" with { type: "json" };
import type { AddTo, Start } from "./command.ts";
import { addAudit } from "./commands/audit.ts";
import { addDeadDiscard } from "./commands/dead-discard.ts";
import { addDeadList } from "./commands/dead-list.ts";
import { addDeadReplay } from "./commands/dead-replay.ts";
import { addDeadShow } from "./commands/dead-show.ts";
import { addDoctor } from "./commands/doctor.ts";
import { addLookUp } from "./commands/lookup.ts";
import { addReplaysCancel, addReplaysList, addReplaysShow } from "./commands/replays.ts";
import { addStatus } from "./commands/status.ts";
import { COMPLAINTS, checkOnce, isUsageFault } from "./complaints.ts";
import { EXIT_MEANINGS, UsageError } from "./exit-codes.ts";
import { addGlobals, GLOBAL_OPTIONS } from "./global-options.ts";

/** Commands under a word of their own. */
const GROUPS = {
  dead: {
    describe: "Dead letters: list, show, replay, discard",
    commands: [addDeadList, addDeadShow, addDeadReplay, addDeadDiscard],
  },
  replays: {
    describe: "Bulk replays: list, show, cancel",
    commands: [addReplaysList, addReplaysShow, addReplaysCancel],
  },
} as const;

/** Every command's words, for the documentation. */
export const COMMAND_PATHS = [
  ["status"],
  ["dead", "list"],
  ["dead", "show"],
  ["dead", "replay"],
  ["dead", "discard"],
  ["replays", "list"],
  ["replays", "show"],
  ["replays", "cancel"],
  ["lookup"],
  ["audit"],
  ["doctor"],
] as const;

/** What may follow a word, or begin. */
function wordsAfter(word?: string): string {
  const depth = word === undefined ? 0 : 1;
  const paths = COMMAND_PATHS.filter(([first]) => word === undefined || first === word);
  return [...new Set(paths.map((path) => path[depth]))].join(", ");
}

/** The help of a command, as the documentation shows it. */
export async function renderHelp(words: readonly string[]): Promise<string> {
  const result = await runCommandLine([...words, "--help"], () => Promise.resolve());
  return result.kind === "text" ? result.text : "";
}

/** Help is no wider than this, nor than the terminal. */
const HELP_COLUMNS_MAX = 100;

/** What came of reading a command line; a command has run by then. */
export type ParseResult =
  | { readonly kind: "ran" }
  /** Help, the version or a completion. */
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "faulty"; readonly why: string };

/** Reads a command line and runs the command that it names. */
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
  const base = yargs().scriptName("adrelay").locale("en").updateStrings(Object(COMPLAINTS));
  const root = addGlobals(base.exitProcess(false));
  const add = (parser: Argv<object>, addTo: AddTo) => addTo(parser, start);
  const top = [addLookUp, addAudit, addDoctor];
  const withGroups = Object.entries(GROUPS).reduce(
    (parser, [word, { describe, commands }]) =>
      parser.command(word, describe, (inner: Argv<object>) =>
        commands.reduce(add, inner).demandCommand(1, `${word} what? ${wordsAfter(word)}`),
      ),
    add(root, addStatus),
  );
  return top
    .reduce(add, withGroups)
    .completion(
      "completion",
      "Prints a script for shell completion: source it, or add it to ~/.bashrc or ~/.zshrc",
    )
    .usage("$0 <command>: looks after an Adrelay through the admin API of its gateway.")
    .demandCommand(1, `which command? ${wordsAfter()}, completion`)
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
