/** Runs the command for tests: as a separate process, or in this process. */
import { tmpdir } from "node:os";
import { PassThrough } from "node:stream";
import { type EndedCommand, type RunningCommand, startAdrelay } from "@adrelay/testkit";
import { INSTALLED, runCli } from "../src/run-cli.ts";
import { TOKEN } from "./admin-api.ts";

export interface ProcessOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

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
  /** What an operator types at the terminal. Without it there is no terminal. */
  readonly typed?: string;
  /** Width of the terminal. */
  readonly columns?: number;
}

/** Runs the command in this process, which is faster. */
export async function runHere(
  words: readonly string[],
  { typed, columns = 120, env = { ADRELAY_ADMIN_TOKEN: TOKEN } }: HereOptions = {},
): Promise<EndedCommand> {
  const makeStream = () => Object.assign(new PassThrough(), { isTTY: typed !== undefined, columns });
  const [stdin, stdout, stderr] = [makeStream(), makeStream(), makeStream()];
  stdin.write(typed ?? "");
  const { signal } = new AbortController();
  const streams = { stdin, stdout, stderr };
  const exit = await runCli({ words, env, cwd: tmpdir(), streams, place: INSTALLED, signal });
  return { exit, stdout: String(stdout.read() ?? ""), stderr: String(stderr.read() ?? "") };
}
