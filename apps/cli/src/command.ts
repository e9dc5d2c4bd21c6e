import type { ArgumentsCamelCase, Argv } from "yargs";
import type { ExitCode } from "./exit-codes.ts";
import type { Session } from "./session.ts";

/** Options that every command has. */
export interface GlobalArgs {
  readonly url: string | undefined;
  readonly tokenFile: string | undefined;
  readonly json: boolean;
  readonly timeoutMs: number;
}

/** One command: its words and options, and what it does. */
export interface Command<A> {
  readonly words: string;
  readonly describe: string;
  options(yargs: Argv<object>): Argv<A>;
  run(args: ArgumentsCamelCase<A>, session: Session): Promise<ExitCode>;
}

/** Runs a command with a session of its own. */
export type Start = (args: GlobalArgs, run: (session: Session) => Promise<ExitCode>) => Promise<void>;

/** Adds a command to a parser. */
export type AddTo = (yargs: Argv<object>, start: Start) => Argv<object>;

export function defineCommand<A>({ words, describe, options, run }: Command<A>): AddTo {
  return (yargs, start) =>
    yargs.command(words, describe, options, (args) =>
      start(readGlobals(args), (session) => run(args, session)),
    );
}

/** The parser has all of them on the outermost level; a command's own type doesn't name them. */
function readGlobals(args: Readonly<Record<string, unknown>>): GlobalArgs {
  const text = (value: unknown) => (typeof value === "string" ? value : undefined);
  return {
    url: text(args["url"]),
    tokenFile: text(args["tokenFile"]),
    json: args["json"] === true,
    timeoutMs: Number(args["timeout"]),
  };
}
