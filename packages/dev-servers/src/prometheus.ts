/** A Prometheus of this machine: found or installed, and run. */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { environment, PROMETHEUS_VARIABLE } from "./environment.ts";
import { freePort } from "./ports.ts";
import { executablesOnPath, guardAgainstOrphaning, installDebianPackage } from "./programs.ts";

/** Debian's package `prometheus` and Prometheus' own archive both bring the two programs. */
interface PrometheusPrograms {
  readonly prometheus: string;
  readonly promtool: string;
}

/** `couldBe`: it could have been installed here, so its absence is a fault. */
export type FoundPrometheus =
  | { readonly kind: "found"; readonly programs: PrometheusPrograms }
  | { readonly kind: "none"; readonly tried: readonly string[]; readonly couldBe: boolean };

export interface FindPrometheusOptions {
  /** Receives a line before an installation. */
  readonly log: (line: string) => void;
  /** PATH and ADRELAY_PROMETHEUS are read from it. The default is this process's environment. */
  readonly env?: NodeJS.ProcessEnv;
}

const DEBIAN_PACKAGE = "prometheus";

/**
 * Finds both programs on PATH, or installs them with apt-get as root. If one way fails, it tries the next one; it never
 * rejects.
 */
export async function findPrometheus({
  log,
  env = environment,
}: FindPrometheusOptions): Promise<FoundPrometheus> {
  const programs = findOnPath(env);
  if (programs !== undefined) {
    return { kind: "found", programs };
  }
  const notOnPath = "path: prometheus and promtool are not both on PATH";
  if (env[PROMETHEUS_VARIABLE] === "path") {
    return { kind: "none", tried: [notOnPath], couldBe: false };
  }
  const installed = await installDebianPackage(DEBIAN_PACKAGE, { log, env });
  if (installed.kind === "not_installed") {
    return { kind: "none", tried: [notOnPath, `apt: ${installed.why}`], couldBe: installed.couldBe };
  }
  const fresh = findOnPath(env);
  return fresh === undefined
    ? { kind: "none", tried: [notOnPath, "apt: what it installed is not on PATH"], couldBe: true }
    : { kind: "found", programs: fresh };
}

/** Why there is no Prometheus and what to install, for people. */
export function describeMissing({ tried }: Extract<FoundPrometheus, { kind: "none" }>): string {
  const ways = tried.map((line) => `  ${line}`).join("\n");
  return `no Prometheus was found, and none could be installed:\n${ways}\nInstall prometheus and promtool (Debian: apt-get install prometheus).`;
}

/** The programs, or why a test that needs them is skipped. */
export type TestPrometheus =
  | { readonly kind: "found"; readonly programs: PrometheusPrograms }
  | { readonly kind: "skip"; readonly why: string };

/** There is no Prometheus although it could have been installed here: the test fails, it is not skipped. */
class PrometheusMissingError extends Error {
  override readonly name = "PrometheusMissingError";
}

/** Finds Prometheus and promtool for a test, or installs them where that is possible. */
export async function findTestPrometheus(): Promise<TestPrometheus> {
  const found = await findPrometheus({ log: () => {} });
  if (found.kind === "found") {
    return found;
  }
  if (found.couldBe) {
    throw new PrometheusMissingError(describeMissing(found));
  }
  return { kind: "skip", why: describeMissing(found) };
}

/**
 * Finds or installs a Prometheus for this process and its child processes, and prints the result. Returns false if
 * it is missing although it could have been installed here. Where it can't be installed, the tests that need it are skipped.
 */
export async function providePrometheus(say: (line: string) => void): Promise<boolean> {
  const found = await findPrometheus({ log: say });
  // Child processes need not try to install it again.
  environment[PROMETHEUS_VARIABLE] = "path";
  if (found.kind === "found") {
    say(`Prometheus: ${found.programs.prometheus}`);
    return true;
  }
  say(`Prometheus: ${describeMissing(found)}`);
  say(found.couldBe ? "" : "The tests that need a real Prometheus are skipped.");
  return !found.couldBe;
}

function findOnPath(env: NodeJS.ProcessEnv): PrometheusPrograms | undefined {
  const [prometheus] = executablesOnPath(env, ["prometheus"]);
  const [promtool] = executablesOnPath(env, ["promtool"]);
  return prometheus === undefined || promtool === undefined ? undefined : { prometheus, promtool };
}

export interface StartPrometheusOptions {
  readonly program: string;
  /** The folder of its data. The caller removes it. */
  readonly dir: string;
  readonly configFile: string;
}

/** A Prometheus that runs and has read its configuration. */
export interface RunningPrometheus {
  readonly url: string;
  readonly pid: number;
  /** Stops it, by force after 5 s. May be called again. */
  stop(): Promise<void>;
}

/** Prometheus ended before it was ready, or did not answer in time. The message has its last output. */
class PrometheusStartError extends Error {
  override readonly name = "PrometheusStartError";
}

const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 5000;
const LOOK_INTERVAL_MS = 50;
const LAST_WORDS_CHARS = 4096;

/** Starts a Prometheus on a free port of 127.0.0.1. If this process dies, it is stopped. */
export async function startPrometheus({
  program,
  dir,
  configFile,
}: StartPrometheusOptions): Promise<RunningPrometheus> {
  const port = await freePort();
  const place = [`--web.listen-address=127.0.0.1:${port}`, `--storage.tsdb.path=${join(dir, "data")}`];
  const args = [`--config.file=${configFile}`, ...place, "--log.level=warn"];
  // It gets its own process group: Ctrl-C in a terminal must not stop it before its clients.
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
