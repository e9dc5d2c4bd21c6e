/** The command as tests run it: as a process of its own, or in this one. */
import { type ChildProcess, spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { PassThrough } from "node:stream";
import { fileURLToPath } from "node:url";
import { runCli } from "../src/run-cli.ts";
import { INSTALLED } from "../src/run-process.ts";
import { TOKEN } from "./admin-api.ts";

const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url));

export interface Ended {
  readonly exit: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly output: { stdout: string; stderr: string };
  readonly ended: Promise<Ended>;
}

export interface ProcessOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Starts the command with this environment (and PATH) alone, and nobody at its standard input. */
export function startAdrelay(
  words: readonly string[],
  { env = { ADRELAY_ADMIN_TOKEN: TOKEN }, cwd = tmpdir() }: ProcessOptions = {},
): Running {
  const child = spawn(process.execPath, [MAIN, ...words], {
    cwd,
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output.stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output.stderr += text;
  });
  const ended = new Promise<Ended>((resolve) => {
    child.once("close", (code, signal) => resolve({ exit: code ?? signal ?? "unknown", ...output }));
  });
  return { child, output, ended };
}

export function runAdrelay(words: readonly string[], options?: ProcessOptions): Promise<Ended> {
  return startAdrelay(words, options).ended;
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
): Promise<Ended> {
  const makeStream = () => Object.assign(new PassThrough(), { isTTY: typed !== undefined, columns });
  const [stdin, stdout, stderr] = [makeStream(), makeStream(), makeStream()];
  stdin.write(typed ?? "");
  const { signal } = new AbortController();
  const streams = { stdin, stdout, stderr };
  const exit = await runCli({ words, env, cwd: tmpdir(), streams, place: INSTALLED, signal });
  return { exit, stdout: String(stdout.read() ?? ""), stderr: String(stderr.read() ?? "") };
}
