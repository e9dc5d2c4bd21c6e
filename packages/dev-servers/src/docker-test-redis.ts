/** A test's Redis in a Docker container, by testcontainers. */
import { hostname } from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import { Redis } from "ioredis";
import {
  type ContainerRuntimeClient,
  GenericContainer,
  getContainerRuntimeClient,
  getReaper,
  ImageName,
  Wait,
} from "testcontainers";
import { environment, NO_REAPER_VARIABLE } from "./environment.ts";
import type { TestRedis } from "./local-test-redis.ts";
import { freeLanePort } from "./ports.ts";
import { REDIS_IMAGE } from "./redis-server.ts";

const REDIS_PORT = 6379;
const START_TRIES = 3;
const STOP_TIMEOUT_MS = 10_000;
const READY_TIMEOUT_MS = 30_000;
const RETRY_MS = 20;
/** The same rules as those of a local server. */
const RULES = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
const COMMAND = ["redis-server", "--protected-mode", "no", "--maxmemory-policy", "noeviction", ...RULES];

/** Starts a container. It and its volume survive `crash`, `stop` and `restart`. */
export async function startDockerTestRedis(extraArgs: readonly string[]): Promise<TestRedis> {
  const engine = await openEngine();
  const { containerRuntime } = engine.info;
  const isHere = containerRuntime.host === "localhost";
  const host = isHere ? "127.0.0.1" : containerRuntime.host;
  const { id, port } = await startOnFreePort(extraArgs, isHere ? host : undefined);
  const url = `redis://${host}:${port}`;
  const container = engine.container.getById(id);
  await waitUntilAnswering(url);
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
      await waitUntilAnswering(url);
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

/** We choose the port: one that Docker chooses would be another one after each start. */
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
      // Another program may have taken the port meanwhile.
      if (attempt === START_TRIES) {
        throw error;
      }
    }
  }
}

interface Place {
  readonly port: number;
  /** The only address to listen on; all addresses of the engine's machine if undefined. */
  readonly address: string | undefined;
  readonly args: readonly string[];
}

class RedisContainer extends GenericContainer {
  #id: string | undefined;

  constructor({ port, address, args }: Place) {
    super(REDIS_IMAGE);
    this.withExposedPorts({ container: REDIS_PORT, host: port });
    if (address !== undefined) {
      // By default Docker listens on every address of this machine.
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

  /** Removes what a failed start has left. */
  async discard(): Promise<void> {
    if (this.#id !== undefined) {
      const engine = await openEngine();
      await engine.container.getById(this.#id).remove({ force: true, v: true });
    }
  }
}

/** Waits until Redis answers with its data loaded. */
async function waitUntilAnswering(url: string): Promise<void> {
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

const ASK_TIMEOUT_MS = 5000;
const PULL_TIMEOUT_MS = 45_000;
const HOST_LABEL = "adrelay.test-redis.host";
const PROCESS_LABEL = "adrelay.test-redis.process";

/** Whether an engine answers and has the image or can fetch it. */
export async function canRunRedis(): Promise<boolean> {
  const image = ImageName.fromString(REDIS_IMAGE);
  try {
    const client = await within(ASK_TIMEOUT_MS, getContainerRuntimeClient());
    if (await within(ASK_TIMEOUT_MS, client.image.exists(image))) {
      return true;
    }
    // A failed pull resolves like a successful one. So ask for the image again.
    await within(PULL_TIMEOUT_MS, client.image.pull(image));
    return await within(ASK_TIMEOUT_MS, client.image.exists(image));
  } catch {
    return false;
  }
}

/**
 * The engine; testcontainers keeps one client for all calls. Containers that a killed test process leaves behind are
 * removed: by testcontainers' reaper, or by us.
 */
async function openEngine(): Promise<ContainerRuntimeClient> {
  const client = await getContainerRuntimeClient();
  try {
    await getReaper(client);
  } catch {
    // The reaper's image can't be fetched here. This process and its child processes do without it.
    environment[NO_REAPER_VARIABLE] = "true";
  }
  if (environment[NO_REAPER_VARIABLE] === "true") {
    await removeOrphans(client);
  }
  return client;
}

/** Labels that name the process that a container belongs to. */
function ownerLabels(): Record<string, string> {
  return { [HOST_LABEL]: hostname(), [PROCESS_LABEL]: String(process.pid) };
}

/** Removes the containers of this host's test processes that have ended without removing them. */
async function removeOrphans({ container: { dockerode } }: ContainerRuntimeClient): Promise<void> {
  const ours = await dockerode.listContainers({
    all: true,
    filters: { label: [`${HOST_LABEL}=${hostname()}`] },
  });
  const orphans = ours.filter(({ Labels }) => !isAlive(Number(Labels[PROCESS_LABEL])));
  await Promise.allSettled(
    // Another test process may remove the same containers, so a failure here is no fault.
    orphans.map(({ Id }) => dockerode.getContainer(Id).remove({ force: true, v: true })),
  );
}

function isAlive(processId: number): boolean {
  try {
    process.kill(processId, 0);
    return true;
  } catch (error) {
    // EPERM: the process runs, under another user.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

async function within<T>(timeoutMs: number, work: Promise<T>): Promise<T> {
  const overdue = wait(timeoutMs, undefined, { ref: false }).then(() => {
    throw new TypeError(`Docker did not answer within ${timeoutMs} ms`);
  });
  return Promise.race([work, overdue]);
}
