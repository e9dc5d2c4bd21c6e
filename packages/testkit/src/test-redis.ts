import { chooseTestRedis } from "./choose-test-redis.ts";
import { startLocalTestRedis } from "./local-test-redis.ts";

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
  /** It hangs, with its connections open, until `thaw`. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Ends it and removes its data. */
  dispose(): Promise<void>;
}

/** Starts one on this machine or in a container: see `chooseTestRedis`. The arguments are redis-server's. */
export async function startTestRedis(extraArgs: readonly string[] = []): Promise<TestRedis> {
  if ((await chooseTestRedis(process.env)) === "local") {
    return startLocalTestRedis(extraArgs);
  }
  // Only now: to load what speaks to Docker takes longer than to start a local Redis.
  const { startDockerTestRedis } = await import("./docker-test-redis.ts");
  return startDockerTestRedis(extraArgs);
}
