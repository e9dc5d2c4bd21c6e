/** Runs pnpm on this workspace. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { environment } from "../environment.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
const TIMEOUT_MS = 60_000;

export interface PnpmRun {
  /** Undefined if pnpm did not run to its end. */
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** @param env variables beside those of this process */
export function runPnpm(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<PnpmRun> {
  return new Promise((resolve) => {
    const options = {
      cwd: ROOT,
      env: { ...environment, ...env },
      maxBuffer: OUTPUT_BYTES_MAX,
      timeout: TIMEOUT_MS,
    };
    execFile("pnpm", args, options, (error, stdout, stderr) => {
      const exitCode = error === null ? 0 : error.code;
      resolve({
        exitCode: typeof exitCode === "number" ? exitCode : undefined,
        stdout,
        stderr: stderr === "" && error !== null ? error.message : stderr,
      });
    });
  });
}
