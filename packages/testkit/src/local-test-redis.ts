import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  findRedisServer,
  type RedisServer,
  RedisStartError,
  type RunningRedis,
  type StartOptions,
  startRedis,
} from "@adrelay/local-redis";
import { freeLanePort } from "./lane-port.ts";
import type { TestRedis } from "./test-redis.ts";

/** The test command's cache: what it has fetched is found here. */
const CACHE_DIR = fileURLToPath(new URL("../../../.adrelay/redis-server", import.meta.url));
const PORT_TRIES = 5;

/** A server process of this machine, with its data in a folder of its own. */
export async function startLocalTestRedis(extraArgs: readonly string[]): Promise<TestRedis> {
  const server = await findServer();
  const dir = mkdtempSync(join(tmpdir(), "adrelay-test-redis-"));
  let running = await startOnFreePort({ server, dir, extraArgs });
  const { port, url } = running;
  return {
    url,
    port,
    crash: async () => {
      running.kill("SIGKILL");
      await running.exited;
    },
    stop: () => running.stop(),
    restart: async () => {
      running = await startRedis({ server, dir, port, extraArgs });
    },
    freeze: async () => running.kill("SIGSTOP"),
    thaw: async () => running.kill("SIGCONT"),
    dispose: async () => {
      await running.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Somebody else may take the port between our look and the server's. */
async function startOnFreePort(options: StartOptions): Promise<RunningRedis> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startRedis({ ...options, port: await freeLanePort() });
    } catch (error) {
      const isTaken = error instanceof RedisStartError && error.code === "port_taken";
      if (!isTaken || attempt === PORT_TRIES) {
        throw error;
      }
    }
  }
}

async function findServer(): Promise<RedisServer> {
  const found = await findRedisServer({ cacheDir: CACHE_DIR, log: () => {}, env: process.env });
  if (found.kind === "none") {
    throw new TypeError(
      `tests need a Redis: ${found.tried.map(({ what, why }) => `${what}: ${why}`).join("; ")}`,
    );
  }
  return found;
}
