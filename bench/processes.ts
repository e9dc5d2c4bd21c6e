import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { z } from "zod";

/** A process of the benchmark. Its output goes to a file, as with a log collector. */
export interface BenchChild extends AsyncDisposable {
  readonly name: string;
  readonly pid: number;
  /** The time from spawn to ready. */
  readonly startMs: number;
  send(message: Readonly<Record<string, unknown>>): void;
  /** The next message of this form. Rejects if the process ends before. */
  receive<T>(schema: z.ZodType<T>): Promise<T>;
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<void>;
}

export interface ChildOptions {
  readonly name: string;
  /** The path from the repository's root, or an absolute one. */
  readonly script: string;
  readonly args?: readonly string[];
  /** What runs the script; this Node by default. */
  readonly program?: string;
  readonly env: Readonly<Record<string, string>>;
  /** The folder of its log. */
  readonly folder: string;
  readonly nodeArgs?: readonly string[];
  /** A URL that answers 2xx once the process is ready. Without it, the process sends a message. */
  readonly readyUrl?: string;
  /** How long it may take to answer there. */
  readonly startTimeoutMs?: number;
}

/** A process ended while it was still needed. */
class ChildEndedError extends Error {
  override readonly name = "ChildEndedError";
}

const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 20_000;
const LOOK_INTERVAL_MS = 5;
const ROOT = new URL("../", import.meta.url);

export async function startChild(options: ChildOptions): Promise<BenchChild> {
  const {
    name,
    script,
    args = [],
    program = process.execPath,
    env,
    folder,
    nodeArgs = [],
    readyUrl,
  } = options;
  const { startTimeoutMs = START_TIMEOUT_MS } = options;
  const startedAtMs = performance.now();
  const logFile = join(folder, `${name}-${Math.round(startedAtMs)}.log`);
  const log = openSync(logFile, "a");
  const child = spawn(program, [...nodeArgs, fileURLToPath(new URL(script, ROOT)), ...args], {
    env: { PATH: process.env["PATH"], ...env },
    // If this process is killed, the IPC channel closes. Then the child stops.
    stdio: ["ignore", log, log, "ipc"],
  });
  closeSync(log);
  const ended = new AbortController();
  const exited = once(child, "exit").then(() => {
    ended.abort(new ChildEndedError(`${name} ended; its log: ${logFile}`));
  });
  const receive = <T>(schema: z.ZodType<T>) => receiveFrom(child, ended.signal, schema);
  const stop = async () => {
    child.kill("SIGTERM");
    const killer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
    await exited;
    clearTimeout(killer);
  };
  const ready =
    readyUrl === undefined ? receive(READY) : untilAnswering(readyUrl, ended.signal, startTimeoutMs);
  await ready.catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return {
    name,
    pid: child.pid ?? 0,
    startMs: performance.now() - startedAtMs,
    send: (message) => void child.send(message),
    receive,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function receiveFrom<T>(child: ChildProcess, ended: AbortSignal, schema: z.ZodType<T>): Promise<T> {
  const received = new Promise<T>((resolve, reject) => {
    const onEnded = () => reject(ended.reason);
    const onMessage = (message: unknown) => {
      const parsed = schema.safeParse(message);
      if (parsed.success) {
        child.off("message", onMessage);
        ended.removeEventListener("abort", onEnded);
        resolve(parsed.data);
      }
    };
    child.on("message", onMessage);
    ended.addEventListener("abort", onEnded);
    if (ended.aborted) {
      onEnded();
    }
  });
  // A caller may await the message later, or never after another failure: that is no unhandled rejection.
  received.catch(() => {});
  return received;
}

const READY = z.object({ kind: z.literal("ready") });

async function untilAnswering(url: string, ended: AbortSignal, timeoutMs: number): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs;
  while (performance.now() < deadlineMs) {
    ended.throwIfAborted();
    const response = await fetch(url).catch(() => undefined);
    await response?.arrayBuffer();
    if (response?.ok === true) {
      return;
    }
    await wait(LOOK_INTERVAL_MS);
  }
  throw new ChildEndedError(`${url} answers nothing`);
}

/** Pids by the name of the process. */
export type Pids = Readonly<Record<string, number>>;

/** CPU time in ms, user and system, by the name of the process. */
export type CpuTimes = Readonly<Record<string, number>>;

/** Linux reports CPU time in hundredths of a second, independent of the tick rate of the kernel. */
const MS_PER_TICK = 10;
const USER_TIME_AT = 11;
const SYSTEM_TIME_AT = 12;
const BYTES_PER_KB = 1024;

/** The CPU time used so far, from /proc/<pid>/stat. */
export function cpuTimesOf(pids: Pids): CpuTimes {
  return Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, cpuMsOf(pid)]));
}

/** The CPU time used between two measurements. */
export function cpuBetween(before: CpuTimes, after: CpuTimes): CpuTimes {
  return Object.fromEntries(Object.entries(after).map(([name, ms]) => [name, ms - (before[name] ?? 0)]));
}

/** The resident memory of a process now. */
export function rssBytesOf(pid: number): number {
  return memoryOf(pid, "VmRSS");
}

/** The most resident memory that a process has had. */
export function peakRssBytesOf(pid: number): number {
  return memoryOf(pid, "VmHWM");
}

function memoryOf(pid: number, field: "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const [, kilobytes] = new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status) ?? [];
  return Number(kilobytes) * BYTES_PER_KB;
}

function cpuMsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The second field is a name in parentheses, which may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[USER_TIME_AT]) + Number(fields[SYSTEM_TIME_AT])) * MS_PER_TICK;
}
