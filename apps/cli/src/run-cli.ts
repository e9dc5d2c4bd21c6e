/** Runs the command adrelay: once as a whole process, and once for tests with given streams. */
import { join } from "node:path";
import { AdminClient } from "./admin-client.ts";
import type { GlobalArgs, Start } from "./command.ts";
import { runCommandLine } from "./command-line.ts";
import { codeOf, EXIT, type ExitCode } from "./exit-codes.ts";
import { type Environment, findConnection, type LocalSession, type Session } from "./session.ts";
import { type Streams, Terminal } from "./terminal.ts";

/** The parts of `process` that the command uses. */
export interface HostProcess {
  readonly argv: readonly string[];
  readonly env: Environment;
  readonly stdin: Streams["stdin"];
  readonly stdout: Streams["stdout"];
  readonly stderr: Streams["stderr"];
  exitCode?: NodeJS.Process["exitCode"];
  cwd(): string;
  exit(code: number): never;
  on(signal: "SIGINT" | "SIGTERM", listener: () => void): unknown;
}

/** What the command knows about the place that it was called from. */
export interface Place {
  /** How to call the command again, for hints. */
  readonly calledAs: string;
  /** Folders in which a stack of `npm start` may keep its files, besides `.adrelay` of the current folder. */
  readonly stackHomes: readonly string[];
}

/** The command as an installed package, outside a checkout. */
export const INSTALLED: Place = { calledAs: "adrelay", stackHomes: [] };

/** The gateway may be restarting, or Redis. */
const PATIENCE_MS = 30_000;

/** How long an interrupted command may take to write its last lines. */
const INTERRUPTED_MAX_MS = 2000;

/** Runs the command as the whole of a process. The process ends once its output is written. */
export async function runProcess(host: HostProcess, place: Place = INSTALLED): Promise<void> {
  const { env, stdin, stdout, stderr } = host;
  const interruption = new AbortController();
  const interrupt = () => {
    interruption.abort();
    setTimeout(() => host.exit(EXIT.interrupted), INTERRUPTED_MAX_MS).unref();
  };
  // The signal may come twice: from the terminal, and from the process that started us.
  host.on("SIGINT", interrupt);
  host.on("SIGTERM", interrupt);
  let isChanging = false;
  stdout.once("error", (error) => {
    const code = codeOf(error);
    // A reader that closes the pipe early, such as `head`, is not a failure.
    const isFailure = code !== "EPIPE";
    if (isFailure) {
      stderr.write(`adrelay: standard output can't be written (${code}).\n`);
      host.exitCode = EXIT.unavailable;
    }
    // A command that changes things goes on, so that it doesn't end halfway.
    if (!isChanging) {
      host.exit(isFailure ? EXIT.unavailable : EXIT.done);
    }
  });
  // Each later write fails again.
  stdout.on("error", () => {});
  stderr.on("error", () => {});
  const exit = await runCli({
    words: host.argv.slice(2),
    env,
    cwd: host.cwd(),
    streams: { stdin, stdout, stderr },
    place,
    signal: interruption.signal,
    onChange: () => {
      isChanging = true;
    },
  });
  host.exitCode ??= exit;
}

export interface CliRun {
  readonly words: readonly string[];
  readonly env: Environment;
  readonly cwd: string;
  readonly streams: Streams;
  readonly place: Place;
  /** Fires at Ctrl-C. */
  readonly signal: AbortSignal;
  /** For how long a command goes on while the gateway is unavailable, in ms; 30 s if not given. */
  readonly patienceMs?: number | undefined;
  /** Called before each call that asks for a change. */
  readonly onChange?: (() => void) | undefined;
}

/** Runs one command line and returns its exit code. */
export async function runCli(cli: CliRun): Promise<ExitCode> {
  const noColor = cli.env["NO_COLOR"] ?? "";
  const terminal = new Terminal(cli.streams, noColor === "");
  let exit: ExitCode = EXIT.done;
  const start: Start = async (args, action) => {
    const local = openLocalSession(cli, args, terminal);
    if (action.kind === "local") {
      exit = await action.run(local);
      return;
    }
    const session = openSession(cli, args, local);
    exit = typeof session === "number" ? session : await action.run(session);
  };
  const parsed = await runCommandLine(cli.words, start, terminal.columns);
  const { calledAs } = cli.place;
  switch (parsed.kind) {
    case "ran":
      return exit;
    case "text":
      terminal.print(parsed.text);
      return EXIT.done;
    case "faulty":
      terminal.note(
        `adrelay: ${parsed.why}\nFor help: \`${calledAs} --help\`, or \`${calledAs} COMMAND --help\`.`,
      );
      return EXIT.usage;
    default:
      return parsed satisfies never;
  }
}

function openLocalSession(
  { env, signal, patienceMs = PATIENCE_MS, place: { calledAs } }: CliRun,
  { json: isJson, timeoutMs }: GlobalArgs,
  terminal: Terminal,
): LocalSession {
  return { terminal, calledAs, isJson, env, timeoutMs, patienceMs, signal, now: () => Date.now() };
}

/** Returns the session, or the exit code if there is no usable address or token. */
function openSession(cli: CliRun, { url, tokenFile }: GlobalArgs, local: LocalSession): Session | ExitCode {
  const { env, cwd, place } = cli;
  const stackHomes = [join(cwd, ".adrelay"), ...place.stackHomes];
  const connection = findConnection({ url, tokenFile, env, cwd, stackHomes });
  if (connection.kind === "faulty") {
    local.terminal.note(`adrelay: ${connection.message}`);
    return connection.exit;
  }
  const { relay, token } = connection;
  return {
    ...local,
    relay,
    client: new AdminClient({ ...local, url: relay.url, token, onChange: cli.onChange }),
  };
}
