import { spawn } from "node:child_process";

export type CommandResult =
  | { readonly kind: "ok"; readonly stdout: string }
  | { readonly kind: "failed"; readonly why: string };

export interface CommandOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly env?: NodeJS.ProcessEnv;
}

/** Runs a program to its end, output captured; never rejects. `why` is its last words, or why it didn't run. */
export function runCommand(
  program: string,
  args: readonly string[],
  { timeoutMs, signal, env }: CommandOptions,
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: timeoutMs,
      ...(signal === undefined ? {} : { signal }),
      ...(env === undefined ? {} : { env }),
    });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.once("error", (error) => resolve({ kind: "failed", why: error.message }));
    child.once("close", (code, killedBy) => {
      if (code === 0) {
        resolve({ kind: "ok", stdout });
      } else {
        resolve({
          kind: "failed",
          why: lastLine(stderr) || lastLine(stdout) || `ended with ${code ?? killedBy}`,
        });
      }
    });
  });
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
