/** A test's Redis as a server process of this machine. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeTried, findRedisServer } from "./find-redis.ts";
import { freeLanePort } from "./ports.ts";
import { startRedis } from "./start-redis.ts";

/** A Redis that belongs to one test. Its data survive `crash` and `restart`. */
export interface TestRedis {
  readonly url: string;
  readonly port: number;
  /** Ends the server with SIGKILL. */
  crash(): Promise<void>;
  /** Stops it gracefully. */
  stop(): Promise<void>;
  /** Starts it again on the same port with the same data. */
  restart(): Promise<void>;
  /** Makes it hang, with its connections open, until `thaw`. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Stops it and removes its data. */
  dispose(): Promise<void>;
}

/** There is no Redis for a test. The message says what was tried. */
class RedisMissingError extends Error {
  override readonly name = "RedisMissingError";
}

/** A server process of this machine, with its data in a temporary folder. */
export async function startLocalTestRedis(
  extraArgs: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<TestRedis> {
  const server = await findRedisServer({ log: () => {}, env });
  if (server.kind === "none") {
    throw new RedisMissingError(`tests need a Redis:\n${describeTried(server)}`);
  }
  const dir = mkdtempSync(join(tmpdir(), "adrelay-test-redis-"));
  let running = await startRedis({ server, dir, choosePort: freeLanePort, extraArgs });
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
