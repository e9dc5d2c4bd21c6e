import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findRedisServer, type RedisServer, type RunningRedis, startRedis } from "@adrelay/local-redis";

/** A real Redis of a test's own; its data survive `crash` and `restart`. */
export interface TestRedis {
  readonly url: string;
  readonly port: number;
  /** kill -9. */
  crash(): Promise<void>;
  /** Ends it in good order. */
  stop(): Promise<void>;
  /** Starts it again on the same port with the same data. */
  restart(): Promise<void>;
  /** SIGSTOP and SIGCONT: it hangs, with its connections open. */
  freeze(): void;
  thaw(): void;
  /** Ends it and removes its data. */
  dispose(): Promise<void>;
}

/** The Redis that this run uses; the test command has found it and says which it is. */
async function testServer(): Promise<RedisServer> {
  const found = await findRedisServer({
    cacheDir: new URL("../../../.adrelay/redis-server", import.meta.url).pathname,
    log: () => {},
    env: process.env,
  });
  if (found.kind === "none") {
    throw new TypeError(
      `tests need a Redis: ${found.tried.map(({ what, why }) => `${what}: ${why}`).join("; ")}`,
    );
  }
  return found;
}

export async function startTestRedis(extraArgs: readonly string[] = []): Promise<TestRedis> {
  const server = await testServer();
  const dir = mkdtempSync(join(tmpdir(), "adrelay-test-redis-"));
  let running: RunningRedis = await startRedis({ server, dir, extraArgs });
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
    freeze: () => running.kill("SIGSTOP"),
    thaw: () => running.kill("SIGCONT"),
    dispose: async () => {
      running.kill("SIGCONT");
      await running.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
