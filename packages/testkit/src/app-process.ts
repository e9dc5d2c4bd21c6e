import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { COMPILE_CACHE } from "./compile-cache.ts";

export type AppName = "gateway" | "worker" | "ad-server";

/** A log line of an app, parsed. */
export type LogLine = Readonly<Record<string, unknown>>;

/** An app as a real process. */
export interface AppProcess {
  readonly name: AppName;
  readonly pid: number;
  /** The line that said it was ready; it tells its ports. */
  readonly listening: LogLine;
  readonly logs: LogLine[];
  readonly stderr: () => string;
  /** Exit code once it has ended; the signal's name if one ended it. */
  readonly exited: Promise<number | string>;
  kill(signal: NodeJS.Signals): void;
  /** SIGTERM, and waits. */
  stop(): Promise<number | string>;
}

/** An app that ended before it was ready. */
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

/** A start takes a second; on a machine that others load it may take far longer. */
const START_TIMEOUT_MS = 60_000;

export interface AppOptions {
  /** Node's own options, such as a module to load first. */
  readonly nodeArgs?: readonly string[];
  /** Takes each log line as it came; `logs` then stays empty, for runs that log without end. */
  readonly onLogText?: (line: string) => void;
}

/** Starts an app with just this environment (and PATH), and waits until it is ready. */
export async function startApp(
  name: AppName,
  env: Readonly<Record<string, string>>,
  { nodeArgs = [], onLogText }: AppOptions = {},
): Promise<AppProcess> {
  const main = fileURLToPath(new URL(`../../../apps/${name}/src/main.ts`, import.meta.url));
  const child = spawn(process.execPath, [...nodeArgs, main], {
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    // The channel is there for its end: if this process is killed, the app hears of it and stops.
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
