import { join } from "node:path";
import { AdminClient } from "./admin-client.ts";
import type { GlobalArgs, Start } from "./command.ts";
import { runCommandLine } from "./command-line.ts";
import { type Environment, findConnection } from "./connection.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import type { Session } from "./session.ts";
import { type Streams, Terminal } from "./terminal.ts";

export interface CliProcess {
  readonly words: readonly string[];
  readonly env: Environment;
  readonly cwd: string;
  readonly streams: Streams;
  readonly place: Place;
  /** Fires at Ctrl-C. */
  readonly signal: AbortSignal;
}

/** What the command knows of where it was called. */
export interface Place {
  /** How to call it again, for hints. */
  readonly calledAs: string;
  /** Where stacks of `npm start` may keep their files, besides `.adrelay` of the current folder. */
  readonly stackHomes: readonly string[];
}

/** Runs one command line; answers with its exit code. */
export async function runCli(cli: CliProcess): Promise<ExitCode> {
  const noColor = cli.env["NO_COLOR"] ?? "";
  const terminal = new Terminal(cli.streams, noColor === "");
  let exit: ExitCode = EXIT.done;
  const start: Start = async (args, run) => {
    const session = openSession(cli, args, terminal);
    exit = typeof session === "number" ? session : await run(session);
  };
  const parsed = await runCommandLine(cli.words, start, terminal.columns);
  switch (parsed.kind) {
    case "ran":
      return exit;
    case "text":
      terminal.print(parsed.text);
      return EXIT.done;
    case "faulty":
      terminal.note(
        `adrelay: ${parsed.why}\n\`${cli.place.calledAs} --help\`, also after a command, tells more.`,
      );
      return EXIT.usage;
    default:
      return parsed satisfies never;
  }
}

/** What the command works with; the exit code if it can't. */
function openSession(cli: CliProcess, args: GlobalArgs, terminal: Terminal): Session | ExitCode {
  const { env, cwd, signal, place } = cli;
  const { calledAs } = place;
  const { url, tokenFile, json: isJson, timeoutMs } = args;
  const stackHomes = [join(cwd, ".adrelay"), ...place.stackHomes];
  const connection = findConnection({ url, tokenFile, env, cwd, stackHomes });
  if (connection.kind === "faulty") {
    terminal.note(`adrelay: ${connection.message}`);
    return connection.exit;
  }
  const { url: found, token } = connection;
  const client = new AdminClient({ url: found, token, timeoutMs, signal, calledAs });
  return { client, terminal, calledAs, isJson, signal, now: () => Date.now() };
}
