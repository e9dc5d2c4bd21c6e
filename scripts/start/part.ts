import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { fileURLToPath } from "node:url";

/** One process of the stack, kept running: if it dies, it is started again. */
export interface Part {
  readonly name: string;
  pid(): number;
  /** SIGTERM, SIGKILL after a bound; resolves once it has ended and stays so. */
  stop(): Promise<void>;
}

export interface AppPartOptions {
  readonly app: "ad-server" | "gateway" | "worker";
  readonly env: NodeJS.ProcessEnv;
  readonly logFile: string;
  readonly say: (line: string) => void;
  readonly onStarted: () => void;
}

/** A part that ended before it was ready; the message says why. */
export class PartError extends Error {
  override readonly name = "PartError";
}

const STOP_TIMEOUT_MS = 30_000;
const RESTART_DELAY_MS = 500;
const RESTART_DELAY_MAX_MS = 10_000;
/** A part that has run this long starts again without a growing delay. */
const STABLE_MS = 30_000;

/** Starts an app and waits until it says that it listens; rejects with a PartError if it ends before. */
export async function startApp(options: AppPartOptions): Promise<Part> {
  let isStopping = false;
  let delayMs = RESTART_DELAY_MS;
  let launching = launch(options);
  let child = await launching;
  let startedAtMs = performance.now();

  const watch = (watched: ChildProcess) => {
    watched.once("exit", (code, signal) => {
      if (!isStopping) {
        delayMs = performance.now() - startedAtMs > STABLE_MS ? RESTART_DELAY_MS : delayMs;
        options.say(`${options.app} ended (${signal ?? `exit ${code}`}); starting it again`);
        setTimeout(() => void restart(), delayMs);
        delayMs = Math.min(delayMs * 2, RESTART_DELAY_MAX_MS);
      }
    });
  };
  const restart = async (): Promise<void> => {
    if (isStopping) {
      return;
    }
    try {
      launching = launch(options);
      child = await launching;
      startedAtMs = performance.now();
      watch(child);
      options.onStarted();
      options.say(`${options.app} runs again (pid ${child.pid})`);
    } catch (error) {
      options.say(error instanceof Error ? error.message : String(error));
      setTimeout(() => void restart(), delayMs);
      delayMs = Math.min(delayMs * 2, RESTART_DELAY_MAX_MS);
    }
  };
  watch(child);
  return {
    name: options.app,
    pid: () => child.pid ?? 0,
    stop: async () => {
      isStopping = true;
      // One that is being started again right now must not be left behind.
      await launching.then(endProcess, () => {});
    },
  };
}

function launch({ app, env, logFile }: AppPartOptions): Promise<ChildProcess> {
  const main = fileURLToPath(new URL(`../../apps/${app}/src/main.ts`, import.meta.url));
  // A group of its own: Ctrl-C is ours to pass on, in order. The channel tells it if we are killed.
  const child = spawn(process.execPath, [main], {
    env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const log = createWriteStream(logFile, { flags: "a" });
  // A full disk must not end what the log is about.
  log.on("error", () => {});
  let stderr = "";
  child.stdout?.pipe(log, { end: false });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    log.write(text);
  });
  return new Promise((resolve, reject) => {
    child.once("message", () => resolve(child));
    child.once("exit", (code, signal) => {
      log.end();
      reject(
        new PartError(`${app} ended (${signal ?? `exit ${code}`}): ${stderr.trim() || `see ${logFile}`}`),
      );
    });
    child.once("error", (error) => reject(new PartError(`${app} can't be started: ${error.message}`)));
  });
}

async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) {
    return;
  }
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  const force = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
  await ended;
  clearTimeout(force);
}
