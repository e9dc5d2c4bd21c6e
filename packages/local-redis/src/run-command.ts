import { type SpawnOptions, spawn } from "node:child_process";

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
  return new Promise((resolve) => {
    const limits: SpawnOptions = { timeout: timeoutMs, killSignal: "SIGKILL", ...(signal && { signal }) };
    const child = spawn(program, args, { ...limits, ...(env && { env }), stdio: ["ignore", "pipe", "pipe"] });
    const startedMs = performance.now();
    let stdout = "";
    let stderr = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      stdout = `${stdout}${text}`.slice(-OUTPUT_CHARS_MAX);
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      stderr = `${stderr}${text}`.slice(-OUTPUT_CHARS_MAX);
    });
    child.once("error", (error) => resolve({ kind: "failed", why: describeSpawnError(program, error) }));
    child.once("exit", () => {
      setTimeout(() => {
        child.stdout?.destroy();
        child.stderr?.destroy();
      }, PIPES_GRACE_MS).unref();
    });
    child.once("close", (code, killedBy) => {
      if (code === 0) {
        resolve({ kind: "ok", stdout });
        return;
      }
      const isLate = killedBy === "SIGKILL" && performance.now() - startedMs >= timeoutMs;
      const end = isLate ? `took longer than ${timeoutMs / 1000} s` : `ended with ${code ?? killedBy}`;
      const lastWords = isLate ? "" : lastLine(stderr) || lastLine(stdout);
      resolve({ kind: "failed", why: lastWords || `${program} ${end}` });
    });
  });
}

function describeSpawnError(program: string, error: Error): string {
  const isMissing = "code" in error && error.code === "ENOENT";
  return isMissing ? `${program} is not installed` : error.message;
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
