import { type ChildProcess, spawn } from "node:child_process";
import type { RedisServer } from "../redis-server.ts";
import { guardAgainstOrphaning } from "./guardian.ts";
import { type ServerSettings, serverCommand, stopCommand } from "./server-command.ts";

/** How a server ended: with a code, or by a signal; neither if it could not be run at all. */
export interface RedisExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A server that runs and answers. Start it again on the same folder, and port, to have its data back. */
export interface RunningRedis {
  readonly url: string;
  readonly port: number;
  /** The server's process; in Docker, that of the client which runs the container: use `kill` there. */
  readonly pid: number;
  /** Resolves once the process has ended, however it did. */
  readonly exited: Promise<RedisExit>;
  /** Sends a signal, as a fault test does; SIGKILL is a crash. Nothing happens once it has ended. */
  kill(signal: NodeJS.Signals): void;
  /** Stops it, by force if it takes too long; fine to call again, and after it has ended by itself. */
  stop(): Promise<void>;
}

/** A server's process, which may not answer yet. */
export interface ServerProcess extends Omit<RunningRedis, "url" | "port"> {
  /** What it last wrote outside its log file, once it has ended: faulty arguments, Docker's refusals. */
  lastWords(): Promise<string[]>;
}

const STOP_TIMEOUT_MS = 5000;
const LAST_WORDS_CHARS = 4096;
const LAST_WORDS_TIMEOUT_MS = 500;

/** Starts a server's process, and sees to it that it doesn't outlive this one. */
export function spawnServer(settings: ServerSettings, log: (line: string) => void): ServerProcess {
  const { server, container } = settings;
  const { program, args } = serverCommand(settings);
  // A group of its own: Ctrl-C in a terminal must not stop it before those that use it.
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], detached: true });
  const pid = child.pid ?? 0;
  const lastWords = collectLastWords(child);
  const exited = whenExited(child);
  const kill = (signal: NodeJS.Signals) => sendSignal(child, server, { container, signal });
  if (pid !== 0) {
    const callOff = guardAgainstOrphaning(stopCommand(server, { pid, container }));
    exited.then(callOff);
  }
  const stop = async () => {
    kill("SIGTERM");
    // One that a test froze hears of it only once it goes on.
    kill("SIGCONT");
    const force = setTimeout(() => {
      log(`Redis did not stop within ${STOP_TIMEOUT_MS / 1000} s: killing it`);
      kill("SIGKILL");
    }, STOP_TIMEOUT_MS);
    await exited;
    clearTimeout(force);
  };
  return { pid, exited, kill, stop, lastWords };
}

function whenExited(child: ChildProcess): Promise<RedisExit> {
  return new Promise((done) => {
    child.once("exit", (code, signal) => done({ code, signal }));
    child.once("error", () => done({ code: null, signal: null }));
  });
}

function collectLastWords(child: ChildProcess): () => Promise<string[]> {
  let words = "";
  const closed = new Promise<void>((done) => {
    child.once("close", () => done());
    child.once("error", () => done());
  });
  const add = (text: string) => {
    words = `${words}${text}`.slice(-LAST_WORDS_CHARS);
  };
  child.stdout?.setEncoding("utf8").on("data", add);
  child.stderr?.setEncoding("utf8").on("data", add);
  child.once("error", (error) => add(error.message));
  return async () => {
    await Promise.race([closed, new Promise((done) => setTimeout(done, LAST_WORDS_TIMEOUT_MS))]);
    return words.split("\n").filter((line) => line.trim() !== "");
  };
}

function sendSignal(
  child: ChildProcess,
  server: RedisServer,
  { container, signal }: { container: string; signal: NodeJS.Signals },
): void {
  if (child.exitCode !== null || child.signalCode !== null) {
    return;
  }
  if (server.kind === "binary") {
    child.kill(signal);
    return;
  }
  spawn("docker", ["kill", "--signal", signal, container], { stdio: "ignore" }).once("error", () => {});
}
