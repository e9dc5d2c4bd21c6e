/** Runs npm, pnpm and at last the script, and passes signals on to them. */
import { spawn } from "node:child_process";
import { constants } from "node:os";

/** @typedef {import("node:child_process").ChildProcess} ChildProcess */
/** @typedef {{ setTool(pid: number | undefined): void }} Lock */

/** A failure that is printed as a message, without a stack. */
export class BootstrapError extends Error {
  /** @param {string} message @param {number} [exitCode] */
  constructor(message, exitCode) {
    super(message);
    this.name = "BootstrapError";
    this.exitCode = exitCode;
  }
}

/** @type {readonly ("SIGINT" | "SIGTERM" | "SIGHUP")[]} */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];
const OUTPUT_CHARS_MAX = 16_384;
const STOP_TIMEOUT_MS = 3000;
const PARENT_CHECK_MS = 500;
/** The process that started this one: npm, or the shell in which npm runs a command. */
const PARENT_PID = process.ppid;

/**
 * Runs npm or pnpm to its end without output. A signal to this process ends the tool too; once the tool has ended, the
 * call rejects with a BootstrapError that has the signal's exit code.
 * @param {{ program: string, args: readonly string[], cwd: string, env?: NodeJS.ProcessEnv, lock: Lock }} options
 * @returns {Promise<{ isOk: boolean, output: string }>}
 */
export async function runTool({ program, args, cwd, env = process.env, lock }) {
  // The tool gets its own process group. So a Ctrl-C in the terminal reaches it only through us, and we know its end.
  const child = spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const output = collectOutput(child);
  /** @type {Promise<{ error?: NodeJS.ErrnoException, code?: number | null, signal?: string | null }>} */
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
      `interrupted (${interruptedBy}); the next run continues the installation`,
      128 + constants.signals[interruptedBy],
    );
  }
  if (error !== undefined) {
    return { isOk: false, output: error.code === "ENOENT" ? `${program} was not found` : error.message };
  }
  return { isOk: code === 0, output: output() || `${program} ended with ${code ?? signal}` };
}

/** @param {ChildProcess} child */
function collectOutput(child) {
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (more) => {
      text = `${text}${more}`.slice(-OUTPUT_CHARS_MAX);
    });
  }
  return () => text.trim();
}

/** @param {ChildProcess} child */
function passSignals(child) {
  /** @type {NodeJS.Signals | undefined} */
  let received;
  /** @type {NodeJS.Timeout | undefined} */
  let force;
  /** @param {NodeJS.Signals} signal */
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

/** @param {ChildProcess} child @param {NodeJS.Signals} signal */
function signalGroup({ pid }, signal) {
  if (pid === undefined) {
    return;
  }
  try {
    process.kill(-pid, signal);
  } catch {
    // The group has just ended.
  }
}

/**
 * Runs a script with this process's terminal and resolves to its exit code. If this process is killed, the IPC channel
 * closes and the script receives 'disconnect'. If npm is ended, the script gets SIGTERM.
 * @param {{ node: string, script: string, args: readonly string[], cwd: string, PATH: string }} options
 * @returns {Promise<number>}
 */
export function runScript({ node, script, args, cwd, PATH }) {
  const child = spawn(node, [script, ...args], {
    cwd,
    env: { ...process.env, PATH },
    stdio: ["inherit", "inherit", "inherit", "ipc"],
  });
  passSignalsOnce(child);
  const watch = process.env["npm_lifecycle_event"] === undefined ? undefined : endWithParent(child);
  child.once("close", () => clearInterval(watch));
  return new Promise((resolve, reject) => {
    child.once("error", (error) => reject(new BootstrapError(`${node} does not run: ${error.message}`)));
    child.once("exit", (code, signal) =>
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])),
    );
  });
}

/**
 * npm passes a signal on to its shell only, which may end without us. Then this process gets another parent. Without npm
 * that is no reason to stop: a shell may end and leave what it started, as after `nohup`.
 * @param {ChildProcess} child
 */
function endWithParent(child) {
  const watch = setInterval(() => {
    if (process.ppid !== PARENT_PID) {
      clearInterval(watch);
      child.kill("SIGTERM");
    }
  }, PARENT_CHECK_MS);
  return watch;
}

/**
 * Ctrl-C in a terminal reaches the whole group, and npm repeats the signal. The script gets each signal from us only
 * once. The listeners stay until the end: without them a repeated signal would end this process before the script.
 * @param {ChildProcess} child
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
