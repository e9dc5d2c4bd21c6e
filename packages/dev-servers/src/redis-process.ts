/** A Redis server's process: its command line, its signals and its end. */
import { type ChildProcess, spawn } from "node:child_process";
import { join, resolve } from "node:path";
import { type Command, guardAgainstOrphaning, runCommand } from "./programs.ts";
import { LOG_FILE } from "./redis-data-folder.ts";
import type { RedisServer } from "./redis-server.ts";

/** How a server ended: with a code or by a signal. It has neither if the program could not be run at all. */
interface RedisExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A server that runs and answers. Started again on the same folder and port, it has its data back. */
export interface RunningRedis {
  readonly url: string;
  readonly port: number;
  /** The server's process. In Docker it is the client that runs the container. */
  readonly pid: number;
  /** Resolves once the process has ended, for whatever reason. A container ends with its client. */
  readonly exited: Promise<RedisExit>;
  /** Sends a signal, as fault tests do. SIGKILL is a crash. Does nothing after the process has ended. */
  kill(signal: NodeJS.Signals): void;
  /** Stops the server, by force after 5 s. May be called again, and after the process has ended. */
  stop(): Promise<void>;
}

/** A server's process that may not answer yet. */
export interface ServerProcess extends Omit<RunningRedis, "url" | "port"> {
  /** Its last output outside the log file, once it has ended: faulty arguments, refusals by Docker. */
  lastWords(): Promise<string[]>;
}

export interface ServerSettings {
  readonly server: RedisServer;
  readonly dir: string;
  readonly port: number;
  readonly appendfsync: "always" | "everysec" | "no";
  readonly extraArgs: readonly string[];
  /** The container's name, for a server in Docker. */
  readonly container: string;
}

const STOP_TIMEOUT_MS = 5000;
const LAST_WORDS_CHARS = 4096;
const LAST_WORDS_TIMEOUT_MS = 500;
const REMOVE_TIMEOUT_MS = 15_000;

/** Starts a server's process. The process is stopped if this one dies. */
export function spawnServer(settings: ServerSettings, log: (line: string) => void): ServerProcess {
  const { server, container } = settings;
  const { program, args } = serverCommand(settings);
  // It gets its own process group: Ctrl-C in a terminal must not stop it before its clients.
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], detached: true });
  const pid = child.pid ?? 0;
  const lastWords = collectLastWords(child);
  let hasEnded = false;
  const exited = whenExited(child).then(async (exit) => {
    if (server.kind === "docker") {
      // A client that was killed leaves its container running, on the port and the data.
      await runCommand("docker", ["rm", "--force", container], { timeoutMs: REMOVE_TIMEOUT_MS });
    }
    hasEnded = true;
    return exit;
  });
  const kill = (signal: NodeJS.Signals) => {
    if (!hasEnded) {
      sendSignal(child, server, { container, signal });
    }
  };
  if (pid !== 0) {
    exited.then(guardAgainstOrphaning(stopCommand(server, { pid, container })));
  }
  const stop = async () => {
    kill("SIGTERM");
    // A server that a test froze handles the signal only after it continues.
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

/** Its files hold users' texts, so nobody else may read them. The image's own entry point does the same. */
const PRIVATE_FILES = 'umask 077; exec "$@"';

/** The command that starts a server on 127.0.0.1, with its append-only file on and without eviction. */
function serverCommand(settings: ServerSettings): Command {
  const { server, dir, port, container } = settings;
  if (server.kind === "binary") {
    const place = ["--bind", "127.0.0.1", "--port", `${port}`];
    const args = [server.path, ...place, ...rules(settings, resolve(dir))];
    return { program: "sh", args: ["-c", PRIVATE_FILES, "sh", ...args] };
  }
  // The container runs as our user, so that we can read and remove the files in the folder.
  const user = process.getuid === undefined ? [] : ["--user", `${process.getuid()}:${process.getgid?.()}`];
  const network = ["-p", `127.0.0.1:${port}:6379`];
  const run = ["run", "--rm", "--name", container, ...user, ...network, "-v", `${resolve(dir)}:/data`];
  // Protected mode would refuse the connections that Docker forwards. The port is open only to 127.0.0.1.
  const redis = ["redis-server", "--protected-mode", "no", ...rules(settings, "/data")];
  return { program: "docker", args: [...run, server.image, ...redis] };
}

function rules({ appendfsync, extraArgs }: ServerSettings, dir: string): string[] {
  const files = ["--dir", dir, "--logfile", join(dir, LOG_FILE)];
  const durability = ["--appendonly", "yes", "--appendfsync", appendfsync, "--save", ""];
  return [...files, ...durability, "--maxmemory-policy", "noeviction", ...extraArgs];
}

interface ServerHandle {
  readonly pid: number;
  readonly container: string;
}

/** The command that stops a server from outside, also a frozen one. */
function stopCommand(server: RedisServer, { pid, container }: ServerHandle): Command {
  return server.kind === "docker"
    ? { program: "docker", args: ["stop", container] }
    : { program: "sh", args: ["-c", 'kill -TERM "$1"; kill -CONT "$1"', "sh", `${pid}`] };
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
  if (server.kind === "binary") {
    child.kill(signal);
    return;
  }
  spawn("docker", ["kill", "--signal", signal, container], { stdio: "ignore" }).once("error", () => {});
}
