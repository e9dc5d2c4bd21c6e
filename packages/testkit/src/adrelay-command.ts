/** The command adrelay as a process of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { COMPILE_CACHE } from "./compile-cache.ts";

const MAIN = fileURLToPath(new URL("../../../apps/cli/src/main.ts", import.meta.url));

/** What a command has come to. */
export interface EndedCommand {
  readonly exit: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningCommand {
  readonly child: ChildProcess;
  /** What it has written so far. */
  readonly output: { stdout: string; stderr: string };
  readonly ended: Promise<EndedCommand>;
}

export interface CommandOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Starts it with this environment (and PATH) alone, and nobody at its standard input. */
export function startAdrelay(
  words: readonly string[],
  { env, cwd = tmpdir() }: CommandOptions,
): RunningCommand {
  const child = spawn(process.execPath, [MAIN, ...words], {
    cwd,
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output.stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output.stderr += text;
  });
  const ended = new Promise<EndedCommand>((resolve) => {
    child.once("close", (code, signal) => resolve({ exit: code ?? signal ?? "unknown", ...output }));
  });
  return { child, output, ended };
}
