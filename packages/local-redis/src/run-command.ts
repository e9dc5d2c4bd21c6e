import { type ChildProcess, type SpawnOptions, type StdioOptions, spawn } from "node:child_process";
import type { Readable } from "node:stream";

export type CommandResult =
  | { readonly kind: "ok"; readonly stdout: string }
  | { readonly kind: "failed"; readonly why: string };

export interface CommandOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
}

/** Enough for any answer that we read; the end of a longer one is what tells why it failed. */
const OUTPUT_CHARS_MAX = 64 * 1024;
/** A program may leave others behind that hold its pipes open: they are not waited for. */
const PIPES_GRACE_MS = 500;

/** Runs a program to its end, output captured; never rejects. `why` is its last words, or why it didn't run. */
export function runCommand(
  program: string,
  args: readonly string[],
  { timeoutMs, signal, env }: CommandOptions,
): Promise<CommandResult> {
  const stdio: StdioOptions = ["ignore", "pipe", "pipe"];
  const child = trySpawn(program, args, {
    ...{ stdio, timeout: timeoutMs, killSignal: "SIGKILL" },
    ...(signal && { signal }),
    ...(env && { env }),
  });
  if (child instanceof Error) {
    return Promise.resolve({ kind: "failed", why: describeSpawnError(program, child) });
  }
  const stdout = collectText(child.stdout);
  const stderr = collectText(child.stderr);
  const startedMs = performance.now();
  return new Promise((resolve) => {
    child.once("error", (error) => resolve({ kind: "failed", why: describeSpawnError(program, error) }));
    child.once("exit", () => setTimeout(() => closePipes(child), PIPES_GRACE_MS).unref());
    child.once("close", (code, killedBy) => {
      const isLate = killedBy === "SIGKILL" && performance.now() - startedMs >= timeoutMs;
      if (code === 0) {
        resolve({ kind: "ok", stdout: stdout() });
      } else if (isLate) {
        resolve({ kind: "failed", why: `${program} took longer than ${timeoutMs / 1000} s` });
      } else {
        const lastWords = lastLine(stderr()) || lastLine(stdout());
        resolve({ kind: "failed", why: lastWords || `${program} ended with ${code ?? killedBy}` });
      }
    });
  });
}

/** A few reasons not to start a program are thrown at once rather than told as an event. */
function trySpawn(program: string, args: readonly string[], options: SpawnOptions): ChildProcess | Error {
  try {
    return spawn(program, args, options);
  } catch (error) {
    return error instanceof Error ? error : new TypeError(String(error));
  }
}

/** The end of what a stream says, once asked. */
function collectText(stream: Readable | null): () => string {
  let text = "";
  stream?.setEncoding("utf8").on("data", (more: string) => {
    text = `${text}${more}`.slice(-OUTPUT_CHARS_MAX);
  });
  return () => text;
}

function closePipes({ stdout, stderr }: ChildProcess): void {
  stdout?.destroy();
  stderr?.destroy();
}

function describeSpawnError(program: string, error: Error): string {
  const isMissing = "code" in error && error.code === "ENOENT";
  return isMissing ? `${program} is not installed` : error.message;
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
