import { spawn } from "node:child_process";
import { constants } from "node:os";
import { BootstrapError } from "./bootstrap-error.mjs";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];

/**
 * Runs a script with this process' terminal, and answers with its exit code once it has ended. The channel is
 * there for its end: if this process is killed, the script hears 'disconnect'.
 */
export function runScript({ node, script, args, cwd, PATH }) {
  const child = spawn(node, [script, ...args], {
    cwd,
    env: { ...process.env, PATH },
    stdio: ["inherit", "inherit", "inherit", "ipc"],
  });
  passSignalsOnce(child);
  return new Promise((resolve, reject) => {
    child.once("error", (error) => reject(new BootstrapError(`${node} does not run: ${error.message}`)));
    child.once("exit", (code, signal) => resolve(code ?? 128 + constants.signals[signal]));
  });
}

/**
 * Ctrl-C in a terminal reaches the whole group, and npm repeats it: the script gets each signal from us once
 * at most. The listeners stay to the end, so that none of the repetitions ends this process before the script.
 */
function passSignalsOnce(child) {
  for (const signal of SIGNALS) {
    let isPassedOn = false;
    process.on(signal, () => {
      if (!isPassedOn) {
        isPassedOn = true;
        child.kill(signal);
      }
    });
  }
}
