/** The apps and the command adrelay as real processes. */
import { type ChildProcess, spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { programOf } from "./app-programs.ts";

/** For NODE_COMPILE_CACHE: each process keeps its compiled code here, so the next one starts in two thirds of the time. */
const COMPILE_CACHE = fileURLToPath(new URL("../../../.adrelay/compile-cache", import.meta.url));

/** As in the image. Without it, an app spends a tenth more of its start on garbage. */
const IMAGE_OPTIONS = ["--max-semi-space-size=4"];

export type AppName = "gateway" | "worker" | "proxy" | "ad-server" | "demo-model";

/** A log line of an app, parsed. */
type LogLine = Readonly<Record<string, unknown>>;

/** A running app. */
export interface AppProcess {
  readonly name: AppName;
  readonly pid: number;
  /** The log line that reports the app ready. It contains the app's ports. */
  readonly listening: LogLine;
  readonly logs: LogLine[];
  readonly stderr: () => string;
  /** Resolves once the process has ended: to its exit code, or to the name of the signal that ended it. */
  readonly exited: Promise<number | string>;
  kill(signal: NodeJS.Signals): void;
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<number | string>;
}

/** An app ended before it was ready. */
export class AppStartError extends Error {
  override readonly name = "AppStartError";
  readonly exit: number | string;
  readonly stderr: string;

  constructor(name: AppName, exit: number | string, stderr: string) {
    super(`${name} ended with ${exit} before it was ready: ${stderr}`);
    this.exit = exit;
    this.stderr = stderr;
  }
}

/** A start takes about a second. On a loaded machine it may take far longer. */
const START_TIMEOUT_MS = 60_000;

export interface AppOptions {
  /** Node's own options, such as a module to load first. */
  readonly nodeArgs?: readonly string[];
  /** Receives each log line as text. `logs` then stays empty: long runs would fill the memory. */
  readonly onLogText?: (line: string) => void;
  /** The most file descriptors, and so connections, that the process can have open. */
  readonly descriptorsMax?: number;
}

/** Starts an app with this environment and PATH, hardly anything else, and waits until it is ready. */
export async function startApp(
  name: AppName,
  env: Readonly<Record<string, string>>,
  { nodeArgs = [], onLogText, descriptorsMax }: AppOptions = {},
): Promise<AppProcess> {
  // Options of Node's own are for tests that measure the process or change what it runs on. They get what is shipped.
  const isPlain = nodeArgs.length === 0 && env["NODE_OPTIONS"] === undefined;
  const command = isPlain
    ? [process.execPath, ...IMAGE_OPTIONS, programOf(name)]
    : [process.execPath, ...nodeArgs, programOf(name, "sources")];
  // The shell replaces itself by the app, which keeps the shell's limits, its pid and its channels.
  const limits = descriptorsMax === undefined ? [] : ["-c", `ulimit -n ${descriptorsMax} && exec "$@"`, "sh"];
  const [file = "", ...args] = limits.length === 0 ? command : ["/bin/sh", ...limits, ...command];
  const child = spawn(file, args, {
    // Several ad servers run at the same time, and few tests ask for their ops listeners.
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: COMPILE_CACHE, AD_SERVER_OPS_PORT: "0", ...env },
    // If this process is killed, the IPC channel closes. Then the app stops.
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const logs: LogLine[] = [];
  const keep = onLogText ?? ((line: string) => void logs.push(parseLine(line)));
  let stderr = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const exited = new Promise<number | string>((resolve) => {
    child.once("close", (code, signal) => resolve(code ?? signal ?? "unknown"));
  });
  const listening = await firstListening({ child, keep, exited, name, stderr: () => stderr });
  return {
    name,
    pid: child.pid ?? 0,
    listening,
    logs,
    stderr: () => stderr,
    exited,
    kill: (signal) => child.kill(signal),
    stop: () => {
      child.kill("SIGTERM");
      return exited;
    },
  };
}

interface Starting {
  readonly child: ChildProcess;
  readonly keep: (line: string) => void;
  readonly exited: Promise<number | string>;
  readonly name: AppName;
  readonly stderr: () => string;
}

function firstListening({ child, keep, exited, name, stderr }: Starting): Promise<LogLine> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new AppStartError(name, "timeout", stderr()));
    }, START_TIMEOUT_MS);
    onLines(child, (line) => {
      keep(line);
      if (line.includes('"event":"listening"')) {
        clearTimeout(timer);
        resolve(parseLine(line));
      }
    });
    void exited.then((exit) => {
      clearTimeout(timer);
      reject(new AppStartError(name, exit, stderr()));
    });
  });
}

function onLines(child: ChildProcess, onLine: (line: string) => void): void {
  let rest = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      onLine(line);
    }
  });
}

function parseLine(line: string): LogLine {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? { ...value } : { text: line };
  } catch {
    return { text: line };
  }
}

/** The result of a command that has ended. */
export interface EndedCommand {
  readonly exit: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningCommand {
  readonly child: ChildProcess;
  /** What it has written so far. */
  readonly output: { stdout: string; stderr: string };
  readonly ended: Promise<EndedCommand>;
}

export interface CommandOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** An open file for standard output. With `pipe`, the default, the output is kept. */
  readonly stdout?: number | "pipe";
}

/** Starts the command adrelay with this environment and PATH, nothing else, and without standard input. */
export function startAdrelay(
  words: readonly string[],
  { env, cwd = tmpdir(), stdout = "pipe" }: CommandOptions,
): RunningCommand {
  const child = spawn(process.execPath, [programOf("cli"), ...words], {
    cwd,
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    stdio: ["ignore", stdout, "pipe"],
  });
  const output = { stdout: "", stderr: "" };
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    output.stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    output.stderr += text;
  });
  const ended = new Promise<EndedCommand>((resolve) => {
    child.once("close", (code, signal) => resolve({ exit: code ?? signal ?? "unknown", ...output }));
  });
  return { child, output, ended };
}
