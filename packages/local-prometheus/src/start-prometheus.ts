import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { freePort, guardAgainstOrphaning } from "@adrelay/local-redis";

export interface StartOptions {
  readonly program: string;
  /** Its data; removed by whoever made it. */
  readonly dir: string;
  readonly configFile: string;
}

/** A Prometheus that runs and has read its configuration. */
export interface RunningPrometheus {
  readonly url: string;
  readonly pid: number;
  /** Stops it, by force if it takes too long; fine to call again. */
  stop(): Promise<void>;
}

/** It ended, or did not answer, before it was ready; the message has its last words. */
export class PrometheusStartError extends Error {
  override readonly name = "PrometheusStartError";
}

const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 5000;
const LOOK_INTERVAL_MS = 50;
const LAST_WORDS_CHARS = 4096;

/** Starts one on 127.0.0.1, on a free port; it doesn't outlive this process. */
export async function startPrometheus({
  program,
  dir,
  configFile,
}: StartOptions): Promise<RunningPrometheus> {
  const port = await freePort();
  const place = [`--web.listen-address=127.0.0.1:${port}`, `--storage.tsdb.path=${join(dir, "data")}`];
  const args = [`--config.file=${configFile}`, ...place, "--log.level=warn"];
  // A group of its own: Ctrl-C in a terminal must not stop it before those that use it.
  const child = spawn(program, args, { cwd: dir, stdio: ["ignore", "ignore", "pipe"], detached: true });
  const ended = new Promise<void>((done) => {
    child.once("exit", () => done());
    child.once("error", () => done());
  });
  const lastWords = collectLastWords(child);
  if (child.pid !== undefined) {
    void ended.then(guardAgainstOrphaning({ program: "kill", args: [String(child.pid)] }));
  }
  const stop = () => stopChild(child, ended);
  const url = `http://127.0.0.1:${port}`;
  if (!(await waitUntilReady(url, ended))) {
    await stop();
    throw new PrometheusStartError(`Prometheus did not start:\n${lastWords()}`);
  }
  return { url, pid: child.pid ?? 0, stop };
}

async function waitUntilReady(url: string, ended: Promise<void>): Promise<boolean> {
  let hasEnded = false;
  void ended.then(() => {
    hasEnded = true;
  });
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  while (!hasEnded && performance.now() < deadlineMs) {
    const isReady = await fetch(`${url}/-/ready`, { signal: AbortSignal.timeout(1000) }).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isReady) {
      return true;
    }
    await new Promise((done) => setTimeout(done, LOOK_INTERVAL_MS));
  }
  return false;
}

function collectLastWords(child: ChildProcess): () => string {
  let words = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    words = `${words}${text}`.slice(-LAST_WORDS_CHARS);
  });
  child.once("error", (error) => {
    words += error.message;
  });
  return () => words;
}

async function stopChild(child: ChildProcess, ended: Promise<void>): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill("SIGTERM");
  }
  const force = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
  await ended;
  clearTimeout(force);
}
