import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join, resolve } from "node:path";
import type { RedisServer } from "./find-redis-server.ts";

/** A server that did not start; the message says why, with its last log lines. */
export class RedisStartError extends Error {
  override readonly name = "RedisStartError";
}

export interface StartOptions {
  readonly server: RedisServer;
  /** Where its data are: they outlive it. */
  readonly dir: string;
  /** A free one if not given. */
  readonly port?: number;
  readonly appendfsync?: "always" | "everysec" | "no";
  readonly extraArgs?: readonly string[];
}

export interface RunningRedis {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Resolves once the process has ended, however it did. */
  readonly exited: Promise<void>;
  /** Sends a signal, as a fault test does; SIGKILL is a crash. */
  kill(signal: NodeJS.Signals): void;
  /** Stops it, by force if it takes too long; fine to call again. */
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 15_000;
const STOP_TIMEOUT_MS = 5000;
const PORT_TRIES = 5;
const PROBE_INTERVAL_MS = 25;
const PROBE_TIMEOUT_MS = 500;

/**
 * Starts a server on 127.0.0.1 with its append-only file on and no eviction, and waits until it answers.
 * Rejects with a RedisStartError.
 */
export async function startRedis(options: StartOptions): Promise<RunningRedis> {
  mkdirSync(options.dir, { recursive: true });
  if (options.port !== undefined) {
    return launch(options, options.port);
  }
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await launch(options, await freePort());
    } catch (error) {
      // Somebody else may have taken the port between our look and the server's.
      if (
        attempt === PORT_TRIES ||
        !(error instanceof RedisStartError) ||
        !error.message.includes("in use")
      ) {
        throw error;
      }
    }
  }
}

async function launch(options: StartOptions, port: number): Promise<RunningRedis> {
  const container = `adrelay-redis-${randomUUID()}`;
  const child = spawnServer(options, port, container);
  const exited = new Promise<void>((done) => {
    child.once("exit", () => done());
    child.once("error", () => done());
  });
  const kill = (signal: NodeJS.Signals) => killServer(child, options.server, { container, signal });
  const stop = async () => {
    kill("SIGTERM");
    const force = setTimeout(() => kill("SIGKILL"), STOP_TIMEOUT_MS);
    await exited;
    clearTimeout(force);
  };
  const isUp = await Promise.race([
    waitUntilAnswering(port, child, options.server),
    exited.then(() => false),
  ]);
  if (!isUp) {
    const isOver = child.exitCode !== null || child.signalCode !== null;
    await stop();
    const why = isOver ? lastLogLines(options.dir) : "it did not answer in time";
    throw new RedisStartError(`Redis did not start on port ${port}: ${why}`);
  }
  return { url: `redis://127.0.0.1:${port}`, port, pid: child.pid ?? 0, exited, kill, stop };
}

function spawnServer(
  { server, dir, appendfsync = "always", extraArgs = [] }: StartOptions,
  port: number,
  name: string,
) {
  const rules = [
    "--appendonly",
    "yes",
    "--appendfsync",
    appendfsync,
    "--maxmemory-policy",
    "noeviction",
    "--save",
    "",
  ];
  if (server.kind === "docker") {
    const volume = `${resolve(dir)}:/data`;
    const docker = [
      "run",
      "--rm",
      "--name",
      name,
      "-p",
      `127.0.0.1:${port}:6379`,
      "-v",
      volume,
      server.image,
    ];
    return spawn("docker", [...docker, "redis-server", ...rules, ...extraArgs], { stdio: "ignore" });
  }
  const place = [
    "--port",
    String(port),
    "--bind",
    "127.0.0.1",
    "--dir",
    resolve(dir),
    "--logfile",
    "redis.log",
  ];
  // A group of its own: Ctrl-C in a terminal must not stop it before those that use it.
  return spawn(server.path, [...place, ...rules, ...extraArgs], { stdio: "ignore", detached: true });
}

function killServer(
  child: ChildProcess,
  server: RedisServer,
  how: { container: string; signal: NodeJS.Signals },
): void {
  if (child.exitCode !== null || child.signalCode !== null) {
    return;
  }
  if (server.kind === "docker") {
    spawn("docker", ["kill", "--signal", how.signal, how.container], { stdio: "ignore" }).once(
      "error",
      () => {},
    );
  } else {
    child.kill(how.signal);
  }
}

async function waitUntilAnswering(port: number, child: ChildProcess, server: RedisServer): Promise<boolean> {
  // In a container the process has a number of its own; Docker itself refuses a port that is taken.
  const mark = server.kind === "docker" ? "redis_version:" : `process_id:${child.pid}\r\n`;
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadlineMs && child.exitCode === null) {
    if (await answersWith(port, mark)) {
      return true;
    }
    await new Promise((done) => setTimeout(done, PROBE_INTERVAL_MS));
  }
  return false;
}

/**
 * Whether the server on a port is ours and ready: INFO tells its process, so that another server that
 * holds the port isn't taken for it, and whether it still loads its data.
 */
function answersWith(port: number, mark: string): Promise<boolean> {
  return new Promise((done) => {
    let reply = "";
    const socket = connect({ port, host: "127.0.0.1", timeout: PROBE_TIMEOUT_MS });
    const end = (answers: boolean) => {
      socket.destroy();
      done(answers);
    };
    socket.once("connect", () => socket.write("INFO server\r\nINFO persistence\r\n"));
    socket.setEncoding("utf8").on("data", (text: string) => {
      reply += text;
      if (/\nloading:\d/.test(reply)) {
        end(reply.includes(mark) && reply.includes("\nloading:0"));
      }
    });
    socket.once("timeout", () => end(false));
    socket.once("error", () => end(false));
    socket.once("close", () => end(false));
  });
}

/** A port of 127.0.0.1 that was free a moment ago. */
export function freePort(): Promise<number> {
  return new Promise((done, fail) => {
    const probe = createServer();
    probe.once("error", fail);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      probe.close(() => done(port));
    });
  });
}

function lastLogLines(dir: string): string {
  try {
    return readFileSync(join(dir, "redis.log"), "utf8").trim().split("\n").slice(-4).join("\n");
  } catch {
    return "it ended at once and left no log";
  }
}
