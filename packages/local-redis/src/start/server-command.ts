import { join, resolve } from "node:path";
import type { RedisServer } from "../redis-server.ts";

/** A program with its arguments. */
export interface Command {
  readonly program: string;
  readonly args: readonly string[];
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

/** The server's own log, in its data folder. */
export const LOG_FILE = "redis.log";

/** How to start a server on 127.0.0.1 with its append-only file on, no eviction, and data that are kept. */
export function serverCommand(settings: ServerSettings): Command {
  const { server, dir, port, container } = settings;
  if (server.kind === "binary") {
    const place = ["--bind", "127.0.0.1", "--port", `${port}`];
    return { program: server.path, args: [...place, ...rules(settings, resolve(dir))] };
  }
  // Our own user in the container, so that the files in the folder are ours to read and to remove.
  const user = process.getuid === undefined ? [] : ["--user", `${process.getuid()}:${process.getgid?.()}`];
  const network = ["-p", `127.0.0.1:${port}:6379`];
  const run = ["run", "--rm", "--name", container, ...user, ...network, "-v", `${resolve(dir)}:/data`];
  // Protected mode would refuse Docker's forwarded connections; the port is open to 127.0.0.1 alone.
  const redis = ["redis-server", "--protected-mode", "no", ...rules(settings, "/data")];
  return { program: "docker", args: [...run, server.image, ...redis] };
}

function rules({ appendfsync, extraArgs }: ServerSettings, dir: string): string[] {
  const files = ["--dir", dir, "--logfile", join(dir, LOG_FILE)];
  const durability = ["--appendonly", "yes", "--appendfsync", appendfsync, "--save", ""];
  return [...files, ...durability, "--maxmemory-policy", "noeviction", ...extraArgs];
}

export interface ServerHandle {
  readonly pid: number;
  readonly container: string;
}

/** How to stop a server from outside; also one that was frozen, which takes a signal only once it goes on. */
export function stopCommand(server: RedisServer, { pid, container }: ServerHandle): Command {
  return server.kind === "docker"
    ? { program: "docker", args: ["stop", container] }
    : { program: "sh", args: ["-c", 'kill -TERM "$1"; kill -CONT "$1"', "sh", `${pid}`] };
}
