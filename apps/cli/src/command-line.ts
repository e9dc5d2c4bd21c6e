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
import { EXIT_MEANINGS, UsageError } from "./exit-codes.ts";
import { parseSpanMs } from "./moments.ts";

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

/** The help of a command, as the documentation shows it. */
export async function renderHelp(words: readonly string[]): Promise<string> {
  const result = await runCommandLine([...words, "--help"], () => Promise.resolve());
  return result.kind === "text" ? result.text : "";
}

const HELP_COLUMNS = 100;
const DEFAULT_TIMEOUT = "10s";

/** What came of reading a command line; a command has run by then. */
export type ParseResult =
  | { readonly kind: "ran" }
  /** Help, the version or a completion. */
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "faulty"; readonly why: string };

/** Reads a command line and runs the command that it names. */
export async function runCommandLine(words: readonly string[], start: Start): Promise<ParseResult> {
  let text = "";
  try {
    await createParser(start).parseAsync([...words], {}, (_error, _args, output) => {
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
  const root = addGlobals(yargs().scriptName("adrelay").locale("en").exitProcess(false).wrap(HELP_COLUMNS));
  const add = (parser: Argv<object>, addTo: AddTo) => addTo(parser, start);
  const top = [addLookUp, addAudit, addDoctor];
  const withGroups = Object.entries(GROUPS).reduce(
    (parser, [word, { describe, commands }]) =>
      parser.command(word, describe, (inner: Argv<object>) =>
        commands.reduce(add, inner).demandCommand(1, `${word}: which of its commands?`),
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
    .demandCommand(1, "which command?")
    .recommendCommands()
    .strict()
    .version(manifest.version)
    .help()
    .epilogue(epilogue())
    .check(checkOnce)
    .group(["url", "token-file", "json", "timeout", "version", "help"], "Options of every command:")
    .fail((message, error) => {
      throw isUsageFault(error) ? new UsageError(error?.message ?? message) : error;
    });
}

/** The parser's own complaints come as a message; what our checks of values throw it wraps in its own error. */
function isUsageFault(error: Error | undefined): boolean {
  return error === undefined || error instanceof UsageError || error.name === "YError";
}

/** The parser makes a list of what is given twice; only the ids are one. */
function checkOnce(args: Readonly<Record<string, unknown>>): true {
  const twice = Object.entries(args).find(
    ([name, value]) => Array.isArray(value) && name !== "_" && name !== "ids",
  );
  if (twice !== undefined) {
    throw new UsageError(`--${twice[0]} was given more than once`);
  }
  return true;
}

function addGlobals(parser: Argv<object>): Argv<object> {
  return parser
    .option("url", {
      type: "string",
      describe:
        "The gateway's ops listener (default: ADRELAY_URL, a running npm start, or http://127.0.0.1:8081)",
    })
    .option("token-file", {
      type: "string",
      describe:
        "File with the admin token (default: ADRELAY_ADMIN_TOKEN, ADMIN_TOKEN, or a running npm start's)",
    })
    .option("json", {
      type: "boolean",
      default: false,
      describe: "Print what the API answers, and nothing else",
    })
    .option("timeout", {
      type: "string",
      default: DEFAULT_TIMEOUT,
      describe: "How long one answer may take",
      coerce: parseTimeout,
    });
}

function parseTimeout(text: string): number {
  const timeoutMs = parseSpanMs(text);
  if (timeoutMs === undefined || timeoutMs < 1) {
    throw new UsageError("--timeout wants a span such as 500ms or 30s");
  }
  return timeoutMs;
}

function epilogue(): string {
  const codes = Object.entries(EXIT_MEANINGS).map(([code, meaning]) => `  ${code.padEnd(4)} ${meaning}`);
  return ["Exit codes:", ...codes].join("\n");
}
