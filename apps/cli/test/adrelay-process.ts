/** Runs the command for tests: as a separate process, or in this process. */
import { tmpdir } from "node:os";
import { PassThrough } from "node:stream";
import { type CommandOptions, type EndedCommand, type RunningCommand, startAdrelay } from "@adrelay/testkit";
import { INSTALLED, runCli } from "../src/run-cli.ts";
import { TOKEN } from "./admin-api.ts";

export type ProcessOptions = Partial<CommandOptions>;

/** Starts the command. Unless `env` is given, it uses the test double's token. */
export function startCommand(
  words: readonly string[],
  { env = { ADRELAY_ADMIN_TOKEN: TOKEN }, ...options }: ProcessOptions = {},
): RunningCommand {
  return startAdrelay(words, { env, ...options });
}

export function runCommand(words: readonly string[], options?: ProcessOptions): Promise<EndedCommand> {
  return startCommand(words, options).ended;
}

export interface HereOptions extends ProcessOptions {
  /** What an operator types at the terminal, one text for each question. Without it there is no terminal. */
  readonly typed?: string | readonly string[];
  /** Width of the terminal. */
  readonly columns?: number;
  /** For how long the command goes on while the gateway is unavailable, in ms; 30 s if not given. */
  readonly patienceMs?: number;
}

const QUESTION_END = /(?:\[y\/N\]|keeps it:) /;

/** Runs the command in this process, which is faster. */
export async function runHere(
  words: readonly string[],
  { typed, columns = 120, patienceMs, env = { ADRELAY_ADMIN_TOKEN: TOKEN } }: HereOptions = {},
): Promise<EndedCommand> {
  let answered = 1;
  const makeStream = () => Object.assign(new PassThrough(), { isTTY: typed !== undefined, columns });
  const [stdin, stdout, stderr] = [makeStream(), makeStream(), makeStream()];
  const [first = "", ...later] = typeof typed === "string" ? [typed] : (typed ?? []);
  stdin.write(first);
  let written = "";
  stderr.on("data", (chunk) => {
    written += chunk;
    const asked = written.split(QUESTION_END).length - 1;
    if (later.length > 0 && asked > answered) {
      answered += 1;
      stdin.write(later.shift() ?? "");
    }
  });
  const { signal } = new AbortController();
  const streams = { stdin, stdout, stderr };
  const exit = await runCli({ words, env, cwd: tmpdir(), streams, place: INSTALLED, signal, patienceMs });
  return { exit, stdout: String(stdout.read() ?? ""), stderr: written };
}
