/** The command as tests run it: as a process of its own, or in this one. */
import { tmpdir } from "node:os";
import { PassThrough } from "node:stream";
import { type EndedCommand, type RunningCommand, startAdrelay } from "@adrelay/testkit";
import { runCli } from "../src/run-cli.ts";
import { INSTALLED } from "../src/run-process.ts";
import { TOKEN } from "./admin-api.ts";

export interface ProcessOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** With the double's token unless told else. */
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
  /** What somebody types at the terminal; without it there is nobody, and no terminal. */
  readonly typed?: string;
  /** How wide the terminal is. */
  readonly columns?: number;
}

/** Runs the command in this process, which is quicker. */
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
