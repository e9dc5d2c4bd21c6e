import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { z } from "zod";

/** A process of the benchmark. Its output goes to a file, as a log collector would take it. */
export interface BenchChild extends AsyncDisposable {
  readonly name: string;
  readonly pid: number;
  /** From spawn to ready. */
  readonly startMs: number;
  tell(message: Readonly<Record<string, unknown>>): void;
  /** The next message of this form; rejects if the process ends before. */
  hear<T>(schema: z.ZodType<T>): Promise<T>;
  /** SIGTERM, and waits. */
  stop(): Promise<void>;
}

export interface ChildOptions {
  readonly name: string;
  /** Below the repository's root. */
  readonly script: string;
  readonly env: Readonly<Record<string, string>>;
  /** Where its log goes. */
  readonly folder: string;
  readonly nodeArgs?: readonly string[];
  /** Answers 2xx once the process is ready; without it, the process tells by a message. */
  readonly readyUrl?: string;
}

/** A process that ended while it was still needed. */
class ChildEndedError extends Error {
  override readonly name = "ChildEndedError";
}

const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 20_000;
const LOOK_INTERVAL_MS = 5;
const ROOT = new URL("../", import.meta.url);
let started = 0;

export async function startChild(options: ChildOptions): Promise<BenchChild> {
  const { name, script, env, folder, nodeArgs = [], readyUrl } = options;
  started += 1;
  const logFile = join(folder, `${name}-${started}.log`);
  const log = openSync(logFile, "a");
  const startedAtMs = performance.now();
  const child = spawn(process.execPath, [...nodeArgs, fileURLToPath(new URL(script, ROOT))], {
    env: { PATH: process.env["PATH"], ...env },
    // The channel is there for its end too: if this process is killed, the child hears of it and stops.
    stdio: ["ignore", log, log, "ipc"],
  });
  closeSync(log);
  const ended = new AbortController();
  const exited = once(child, "exit").then(() => {
    ended.abort(new ChildEndedError(`${name} ended; its log: ${logFile}`));
  });
  const hear = <T>(schema: z.ZodType<T>) => hearFrom(child, ended.signal, schema);
  const stop = async () => {
    child.kill("SIGTERM");
    const killer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
    await exited;
    clearTimeout(killer);
  };
  const ready = readyUrl === undefined ? hear(READY) : untilAnswering(readyUrl, ended.signal);
  await ready.catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return {
    name,
    pid: child.pid ?? 0,
    startMs: performance.now() - startedAtMs,
    tell: (message) => void child.send(message),
    hear,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function hearFrom<T>(child: ChildProcess, ended: AbortSignal, schema: z.ZodType<T>): Promise<T> {
  const heard = new Promise<T>((resolve, reject) => {
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
  // Some are asked for early and awaited later, or not at all once something else has failed.
  heard.catch(() => {});
  return heard;
}

const READY = z.object({ kind: z.literal("ready") });

async function untilAnswering(url: string, ended: AbortSignal): Promise<void> {
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
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

/** Processes by what they are, each with its pid. */
export type Pids = Readonly<Record<string, number>>;

/** CPU time that each used, user and system. */
export type CpuTimes = Readonly<Record<string, number>>;

/** Linux counts CPU time in hundredths of a second for programs, whatever its clock does. */
const MS_PER_TICK = 10;
const USER_TIME_AT = 11;
const SYSTEM_TIME_AT = 12;
const BYTES_PER_KB = 1024;

/** CPU time so far, in ms, from /proc/<pid>/stat. */
export function cpuTimesOf(pids: Pids): CpuTimes {
  return Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, cpuMsOf(pid)]));
}

/** What each used between two looks. */
export function cpuBetween(before: CpuTimes, after: CpuTimes): CpuTimes {
  return Object.fromEntries(Object.entries(after).map(([name, ms]) => [name, ms - (before[name] ?? 0)]));
}

/** Memory that a process has now, resident. */
export function rssBytesOf(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) * BYTES_PER_KB;
}

function cpuMsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The second field is a name in parentheses, which may hold blanks.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[USER_TIME_AT]) + Number(fields[SYSTEM_TIME_AT])) * MS_PER_TICK;
}
