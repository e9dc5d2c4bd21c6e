import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";
import type { Command } from "./server-command.ts";

/** Waits for the end of its input, which comes when the process that holds the other end dies; then acts. */
const SCRIPT = 'read -r _; "$@"';

/**
 * Stops a server whose owner was killed without a chance to stop it. A small shell of its own group, so that
 * no Ctrl-C reaches it, holds a pipe to this process and runs the command once the pipe breaks.
 * The returned function calls it off.
 */
export function guardAgainstOrphaning(stopServer: Command): () => void {
  const shell = spawn("sh", ["-c", SCRIPT, "sh", stopServer.program, ...stopServer.args], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  // Without a shell there is no guard; the server runs all the same.
  shell.once("error", () => {});
  shell.stdin.once("error", () => {});
  letGo(shell);
  // Killed before its pipe closes, so that it can't take the closing for its owner's death.
  return () => {
    shell.kill("SIGKILL");
    shell.stdin.destroy();
  };
}

/** It must not keep this process alive. */
function letGo(shell: ChildProcess): void {
  shell.unref();
  if (shell.stdin instanceof Socket) {
    shell.stdin.unref();
  }
}
