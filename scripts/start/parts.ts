/** The processes of the local stack: the apps, and a Redis if none is given. */
import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, existsSync, readFileSync, writeFileSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  describeServer,
  describeTried,
  findRedisServer,
  imageMemorySettings,
  type RedisServer,
  startRedis,
} from "@adrelay/dev-servers";
import { type AppName, stopLimitMs } from "./app-settings.ts";
import { KeptProcess, type RunningProcess } from "./kept-process.ts";
import { PartError } from "./part-error.ts";

export interface PartOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Ends a launch that is under way, and leaves none of it behind. */
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
  /** Called each time the part was started again: it has another pid. */
  readonly onRestarted: () => void;
}

export interface AppPartOptions extends PartOptions {
  readonly app: AppName;
  readonly logFile: string;
}

/** Starts an app and waits until it reports that it listens. Rejects if it ends before, and then leaves none. */
export async function startApp(options: AppPartOptions): Promise<KeptProcess> {
  const part = new KeptProcess({
    ...options,
    name: options.app,
    launch: (stopped) => launchApp(options, AbortSignal.any([options.signal, stopped])),
  });
  await part.start();
  return part;
}

export interface RedisPartOptions extends PartOptions {
  readonly dataDir: string;
}

/** How much of the machine's memory a Redis of ours may use: its maxmemory, of which quotas are shares. */
const REDIS_MEMORY_SHARE = 0.25;

/** A file beside the data that names the kind of server that wrote them. */
const WAY_FILE = "server-kind";

/**
 * Starts a Redis that keeps its data, on a free port that it also keeps. Rejects with a PartError or a RedisStartError, and
 * then leaves none.
 */
export async function startOwnRedis(options: RedisPartOptions): Promise<{ part: KeptProcess; url: string }> {
  const { env, dataDir: dir, say, signal } = options;
  const wayFile = join(dir, WAY_FILE);
  const server = await findRedisServer({ env: { ...rememberedWay(wayFile), ...env }, log: say, signal });
  if (server.kind === "none") {
    throw new PartError(
      `no Redis was found, and none could be fetched:\n${describeTried(server)}\nInstall redis-server or valkey-server, or set REDIS_URL.`,
    );
  }
  const extraArgs = ["--maxmemory", String(Math.floor(totalmem() * REDIS_MEMORY_SHARE))];
  const first = await startRedis({ server, dir, extraArgs, signal });
  const { port, url } = first;
  let next: typeof first | undefined = first;
  const launch = async (stopped: AbortSignal): Promise<RunningProcess> => {
    const redis = next ?? (await startRedis({ server, dir, port, extraArgs, signal: stopped }));
    next = undefined;
    const ended = redis.exited.then(({ code, signal }) => describeEnd(code, signal));
    return { pid: redis.pid, ended, stop: () => redis.stop() };
  };
  const part = new KeptProcess({ ...options, name: "redis", launch });
  await part.start();
  try {
    writeFileSync(wayFile, wayOf(server));
  } catch (error) {
    await part.stop();
    throw new PartError(`${wayFile} can't be written: ${error instanceof Error ? error.message : error}`);
  }
  say(`redis runs at ${url}: ${describeServer(server)}, data in ${dir}`);
  return { part, url };
}

function wayOf(server: RedisServer): string {
  if (server.kind === "docker") {
    return "docker";
  }
  return server.origin === "embedded" ? "embedded" : "path";
}

/**
 * Another server might be too old to read the data. So the kind that wrote them is used again, unless
 * ADRELAY_REDIS_SERVER says otherwise.
 */
function rememberedWay(file: string): NodeJS.ProcessEnv {
  const way = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
  return way === "embedded" || way === "docker" ? { ADRELAY_REDIS_SERVER: way } : {};
}

/** Resolves once the app listens. Rejects with a PartError if it ends before, also because the signal has ended it. */
async function launchApp(
  { app, env, logFile }: AppPartOptions,
  signal: AbortSignal,
): Promise<RunningProcess> {
  signal.throwIfAborted();
  // A fault in it must come before the process that it is about.
  const limitMs = stopLimitMs(app, env);
  const main = fileURLToPath(new URL(`../../apps/${app}/src/main.ts`, import.meta.url));
  // It gets its own process group: we pass Ctrl-C on, in the right order. If we are killed, the IPC channel closes.
  const child = spawn(process.execPath, [main], {
    env: { ...env, ...imageMemorySettings(env) },
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const readStderr = keepLog(child, logFile);
  const ended = new Promise<string>((resolve) => {
    child.once("exit", (code, endSignal) => resolve(describeEnd(code, endSignal)));
  });
  const stop = () => endProcess(child, limitMs);
  const giveUp = () => void stop();
  signal.addEventListener("abort", giveUp);
  const listening = new Promise<RunningProcess>((resolve, reject) => {
    child.once("message", () => resolve({ pid: child.pid ?? 0, ended, stop }));
    void ended.then((how) => {
      reject(new PartError(`${app} ended (${how}): ${readStderr() || `see ${logFile}`}`));
    });
    child.once("error", (error) => reject(new PartError(`${app} can't be started: ${error.message}`)));
  });
  // Once it listens, the stack stops it, in its order.
  return listening.finally(() => signal.removeEventListener("abort", giveUp));
}

/** Appends all that a process writes to its log. Returns how to read what it has written to standard error. */
function keepLog(child: ChildProcess, logFile: string): () => string {
  const log = createWriteStream(logFile, { flags: "a" });
  // A full disk must not end the stack.
  log.on("error", () => {});
  let stderr = "";
  child.stdout?.pipe(log, { end: false });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    log.write(text);
  });
  child.once("exit", () => log.end());
  return () => stderr.trim();
}

function describeEnd(code: number | null, signal: NodeJS.Signals | null): string {
  return signal ?? `exit ${code}`;
}

async function endProcess(child: ChildProcess, limitMs: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) {
    return;
  }
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  const force = setTimeout(() => child.kill("SIGKILL"), limitMs);
  await ended;
  clearTimeout(force);
}
