/** How a command is defined, the options that every command has, and the arguments of several commands. */
import { adResponseIdSchema } from "@adrelay/contract";
import type { ArgumentsCamelCase, Argv } from "yargs";
import { type ExitCode, UsageError } from "./exit-codes.ts";
import { parseSpanMs } from "./selection-options.ts";
import type { LocalSession, Session } from "./session.ts";

/** Values of the options that every command has. */
export interface GlobalArgs {
  readonly url: string | undefined;
  readonly tokenFile: string | undefined;
  readonly json: boolean;
  readonly timeoutMs: number;
}

/** One command: its words, its options and its action in a session `S`. */
export interface Command<A, S> {
  readonly words: string;
  readonly describe: string;
  options(yargs: Argv<object>): Argv<A>;
  run(args: ArgumentsCamelCase<A>, session: S): Promise<ExitCode>;
}

/** A command's action, and the session that it needs: `local` needs neither a gateway nor a token. */
type Action =
  | { readonly kind: "with_gateway"; run(session: Session): Promise<ExitCode> }
  | { readonly kind: "local"; run(session: LocalSession): Promise<ExitCode> };

/** Opens a session for a command and runs the command in it. */
export type Start = (args: GlobalArgs, action: Action) => Promise<void>;

/** Adds a command to a parser. */
export type AddTo = (yargs: Argv<object>, start: Start) => Argv<object>;

export function defineCommand<A>({ words, describe, options, run }: Command<A, Session>): AddTo {
  return (yargs, start) =>
    yargs.command(words, describe, withArguments(words, options), (args) =>
      start(readGlobals(args), { kind: "with_gateway", run: (session) => run(args, session) }),
    );
}

/** Defines a command that needs neither a gateway nor a token. */
export function defineLocalCommand<A>({ words, describe, options, run }: Command<A, LocalSession>): AddTo {
  return (yargs, start) =>
    yargs.command(words, describe, withArguments(words, options), (args) =>
      start(readGlobals(args), { kind: "local", run: (session) => run(args, session) }),
    );
}

const TOO_FEW = "Not enough non-option arguments: got %s, need at least %s";

/** If arguments are missing, yargs says only how many. This command's own text names them. */
function withArguments<A>(words: string, options: (yargs: Argv<object>) => Argv<A>): typeof options {
  const text = `expected ${words.split(" ").slice(1).join(" ")}: %s given, at least %s required`;
  return (yargs) => options(yargs.updateStrings(Object({ [TOO_FEW]: { one: text, other: text } })));
}

/** The options of every command are added to the root parser, so a command's own type does not have them. */
function readGlobals(args: Readonly<Record<string, unknown>>): GlobalArgs {
  const text = (value: unknown) => (typeof value === "string" ? value : undefined);
  return {
    url: text(args["url"]),
    tokenFile: text(args["tokenFile"]),
    json: args["json"] === true,
    timeoutMs: Number(args["timeout"]),
  };
}

const DEFAULT_TIMEOUT = "10s";

/** One day. Node's timers can't run for much longer than three weeks. */
const TIMEOUT_MAX_MS = 86_400_000;

/** The names of the options that every command has. */
export const GLOBAL_OPTIONS = ["url", "token-file", "json", "timeout"] as const;

export function addGlobals(parser: Argv<object>): Argv<object> {
  return parser
    .option("url", {
      type: "string",
      requiresArg: true,
      describe:
        "Address of the gateway's ops listener (default: ADRELAY_URL, a running npm start, or http://127.0.0.1:8081)",
    })
    .option("token-file", {
      type: "string",
      requiresArg: true,
      describe:
        "File with the admin token (default: ADRELAY_ADMIN_TOKEN, ADMIN_TOKEN, or the token of a running npm start)",
    })
    .option("json", {
      type: "boolean",
      default: false,
      describe: "Print only the API's answer, unchanged",
    })
    .option("timeout", {
      type: "string",
      requiresArg: true,
      default: DEFAULT_TIMEOUT,
      describe: "How long to wait for one answer",
      coerce: parseTimeout,
    });
}

function parseTimeout(text: string): number {
  const timeoutMs = parseSpanMs(text);
  if (timeoutMs === undefined || timeoutMs < 1 || timeoutMs > TIMEOUT_MAX_MS) {
    throw new UsageError("--timeout must be a time span such as 500ms or 30s, at most one day");
  }
  return timeoutMs;
}

/** The id of one ad response. */
export const adResponsePositional = {
  describe: "ad_response_id",
  type: "string",
  coerce: checkId,
} as const;

/** The ids of several ad responses. An id that is given twice counts once. */
export const adResponsesPositional = {
  describe: "ad_response_id, one or more",
  type: "string",
  array: true,
  // Without this, the help would show an empty list as default. With it, yargs passes [undefined] if there are no ids.
  default: undefined,
  coerce: (ids: readonly (string | undefined)[] = []) => [
    ...new Set(ids.filter((id) => id !== undefined).map(checkId)),
  ],
} as const;

function checkId(text: string): string {
  const parsed = adResponseIdSchema.safeParse(text);
  if (!parsed.success) {
    throw new UsageError(`an id must be a UUID, not ${JSON.stringify(text)}`);
  }
  return parsed.data;
}
