import { join } from "node:path";
import { AdminClient } from "./admin-client.ts";
import type { GlobalArgs } from "./command.ts";
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
  /** Where stacks of `npm start` may keep their files, besides `.adrelay` of the current folder. */
  readonly stackHomes: readonly string[];
  /** Fires at Ctrl-C. */
  readonly signal: AbortSignal;
}

/** Runs one command line; answers with its exit code. */
export async function runCli(cli: CliProcess): Promise<ExitCode> {
  const noColor = cli.env["NO_COLOR"] ?? "";
  const terminal = new Terminal(cli.streams, noColor === "");
  let exit: ExitCode = EXIT.done;
  const parsed = await runCommandLine(cli.words, async (args, run) => {
    const session = openSession(cli, args, terminal);
    exit = typeof session === "number" ? session : await run(session);
  });
  switch (parsed.kind) {
    case "ran":
      return exit;
    case "text":
      terminal.print(parsed.text);
      return EXIT.done;
    case "faulty":
      terminal.note(`adrelay: ${parsed.why}\n\`adrelay --help\`, also after a command, tells more.`);
      return EXIT.usage;
    default:
      return parsed satisfies never;
  }
}

/** What the command works with; the exit code if it can't. */
function openSession(cli: CliProcess, args: GlobalArgs, terminal: Terminal): Session | ExitCode {
  const { env, cwd, signal } = cli;
  const { url, tokenFile, json: isJson, timeoutMs } = args;
  const stackHomes = [join(cwd, ".adrelay"), ...cli.stackHomes];
  const connection = findConnection({ url, tokenFile, env, cwd, stackHomes });
  if (connection.kind === "faulty") {
    terminal.note(`adrelay: ${connection.message}`);
    return connection.exit;
  }
  const client = new AdminClient({ url: connection.url, token: connection.token, timeoutMs, signal });
  return { client, terminal, isJson, signal, now: () => Date.now() };
}
