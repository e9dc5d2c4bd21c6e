import { spawn } from "node:child_process";
import { constants } from "node:os";
import { BootstrapError } from "./bootstrap-error.mjs";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];
const OUTPUT_CHARS_MAX = 16_384;
const STOP_TIMEOUT_MS = 3000;

/**
 * Runs npm or pnpm to its end, silently. Answers whether it succeeded, and its output. A signal
 * to this process ends the tool as well, is waited for, and is thrown as a BootstrapError with its exit code.
 */
export async function runTool({ program, args, cwd, env = process.env, lock }) {
  // A group of its own: a Ctrl-C in the terminal reaches it through us alone, so that we know when it is over.
  const child = spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const output = collectOutput(child);
  const ended = new Promise((resolve) => {
    child.once("error", (error) => resolve({ error }));
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
  lock.setTool(child.pid);
  const interruption = passSignals(child);
  const { error, code, signal } = await ended;
  lock.setTool(undefined);
  const interruptedBy = interruption.end();
  if (interruptedBy !== undefined) {
    throw new BootstrapError(
      `interrupted (${interruptedBy}); the next run takes it up again`,
      128 + constants.signals[interruptedBy],
    );
  }
  if (error !== undefined) {
    return { isOk: false, output: error.code === "ENOENT" ? `${program} was not found` : error.message };
  }
  return { isOk: code === 0, output: output() || `${program} ended with ${code ?? signal}` };
}

function collectOutput(child) {
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (more) => {
      text = `${text}${more}`.slice(-OUTPUT_CHARS_MAX);
    });
  }
  return () => text.trim();
}

function passSignals(child) {
  let received;
  let force;
  const onSignal = (signal) => {
    if (received === undefined) {
      received = signal;
      signalGroup(child, "SIGTERM");
      force = setTimeout(() => signalGroup(child, "SIGKILL"), STOP_TIMEOUT_MS);
    }
  };
  for (const signal of SIGNALS) {
    process.on(signal, onSignal);
  }
  return {
    end: () => {
      clearTimeout(force);
      for (const signal of SIGNALS) {
        process.removeListener(signal, onSignal);
      }
      return received;
    },
  };
}

function signalGroup(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch {
    // It has just ended by itself.
  }
}
