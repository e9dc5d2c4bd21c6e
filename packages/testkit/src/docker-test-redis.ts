import { Redis } from "ioredis";
import { GenericContainer, Wait } from "testcontainers";
import { openEngine, ownerLabels, REDIS_IMAGE } from "./docker-redis-engine.ts";
import { freeLanePort } from "./lane-port.ts";
import type { TestRedis } from "./test-redis.ts";

const REDIS_PORT = 6379;
const START_TRIES = 3;
const STOP_TIMEOUT_MS = 10_000;
const READY_TIMEOUT_MS = 30_000;
const RETRY_MS = 20;
/** As the server of the local adapter has it. */
const RULES = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
const COMMAND = ["redis-server", "--protected-mode", "no", "--maxmemory-policy", "noeviction", ...RULES];

/** A container of its own, kept with its volume through `crash`, `stop` and `restart`. */
export async function startDockerTestRedis(extraArgs: readonly string[]): Promise<TestRedis> {
  const engine = await openEngine();
  const { containerRuntime } = engine.info;
  const isHere = containerRuntime.host === "localhost";
  const host = isHere ? "127.0.0.1" : containerRuntime.host;
  const { id, port } = await startOnFreePort(extraArgs, isHere ? host : undefined);
  const url = `redis://${host}:${port}`;
  const container = engine.container.getById(id);
  await answering(url);
  return {
    url,
    port,
    crash: async () => {
      const exited = container.wait();
      await container.kill({ signal: "SIGKILL" });
      await exited;
    },
    stop: () => engine.container.stop(container, { timeout: STOP_TIMEOUT_MS }),
    restart: async () => {
      await container.start();
      await answering(url);
    },
    freeze: async () => {
      await container.pause();
    },
    thaw: async () => {
      await container.unpause();
    },
    dispose: async () => {
      await container.remove({ force: true, v: true });
    },
  };
}

/** A port of its own choice would be another one after each start, so Docker is told which to take. */
async function startOnFreePort(
  extraArgs: readonly string[],
  address: string | undefined,
): Promise<{ id: string; port: number }> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freeLanePort();
    const redis = new RedisContainer({ port, address, args: extraArgs });
    try {
      const started = await redis.start();
      return { id: started.getId(), port };
    } catch (error) {
      await redis.discard();
      // Somebody else may have taken the port meanwhile.
      if (attempt === START_TRIES) {
        throw error;
      }
    }
  }
}

class RedisContainer extends GenericContainer {
  #id: string | undefined;

  constructor({ port, address, args }: Place) {
    super(REDIS_IMAGE);
    this.withExposedPorts({ container: REDIS_PORT, host: port });
    if (address !== undefined) {
      // It would listen on every address of this machine.
      this.hostConfig.PortBindings = {
        [`${REDIS_PORT}/tcp`]: [{ HostIp: address, HostPort: String(port) }],
      };
    }
    this.withCommand([...COMMAND, ...args]);
    this.withLabels(ownerLabels());
    this.withWaitStrategy(Wait.forLogMessage("Ready to accept connections"));
  }

  protected override containerCreated = async (id: string): Promise<void> => {
    this.#id = id;
  };

  /** Removes what a start that failed has left. */
  async discard(): Promise<void> {
    if (this.#id !== undefined) {
      const engine = await openEngine();
      await engine.container.getById(this.#id).remove({ force: true, v: true });
    }
  }
}

interface Place {
  readonly port: number;
  /** The one address to listen on; all of the engine's machine if not given. */
  readonly address: string | undefined;
  readonly args: readonly string[];
}

/** Waits until it answers, with its data loaded. */
async function answering(url: string): Promise<void> {
  const client = new Redis(url, { retryStrategy: () => RETRY_MS, maxRetriesPerRequest: null });
  client.on("error", () => {});
  const overdue = setTimeout(() => client.disconnect(), READY_TIMEOUT_MS);
  try {
    await client.ping();
  } finally {
    clearTimeout(overdue);
    client.disconnect();
  }
}
