/** The promises of every TestRedis, local or in Docker. Fault tests rely on them. */
import { existsSync } from "node:fs";
import { findRedisServer } from "@adrelay/dev-servers";
import { Redis } from "ioredis";
import { getContainerRuntimeClient } from "testcontainers";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  chooseTestRedis,
  PINNED_SERVERS,
  pinnedTestEnv,
  startTestRedis,
  type TestRedis,
  type TestRedisKind,
} from "../src/index.ts";

const HANG_MS = 300;

/** Every kind that this machine can run, whatever this run chose for the other tests. */
const kinds = [
  ...((await hasLocalServer()) ? (["local"] as const) : []),
  ...((await hasEngine()) ? (["docker"] as const) : []),
];

describe.each(kinds)("a test's Redis of kind %s", (kind) => {
  async function setup(extraArgs: readonly string[] = []) {
    vi.stubEnv("ADRELAY_TEST_REDIS", kind);
    onTestFinished(() => void vi.unstubAllEnvs());
    const redis = await startTestRedis(extraArgs);
    let isDisposed = false;
    const dispose = async () => {
      if (!isDisposed) {
        isDisposed = true;
        await redis.dispose();
      }
    };
    onTestFinished(dispose);
    return { redis, client: connect(redis), dispose };
  }

  function connect({ url }: TestRedis): Redis {
    const client = new Redis(url, { retryStrategy: () => 20 });
    client.on("error", () => {});
    onTestFinished(() => client.disconnect());
    return client;
  }

  test("keeps its data and its port through a crash", async () => {
    const { redis, client } = await setup();
    await client.set("kept", "yes");
    await redis.crash();
    await expect(connectOnce(redis)).rejects.toThrow();
    await redis.restart();
    expect(await client.get("kept")).toBe("yes");
  });

  test("keeps its data through a stop", async () => {
    const { redis, client } = await setup();
    await client.set("kept", "yes");
    await redis.stop();
    await expect(connectOnce(redis)).rejects.toThrow();
    await redis.restart();
    expect(await client.get("kept")).toBe("yes");
  });

  test("holds its connections while frozen, and answers after the thaw", async () => {
    const { redis, client } = await setup();
    await client.ping();
    await redis.freeze();
    const ping = client.ping();
    expect(await Promise.race([ping, hanging()])).toBe("hanging");
    expect(client.status).toBe("ready");
    await redis.thaw();
    expect(await ping).toBe("PONG");
  });

  test("syncs each write and never evicts, unless arguments say otherwise", async () => {
    const { client } = await setup(["--maxmemory-policy", "allkeys-lru"]);
    expect(await client.config("GET", "appendonly")).toEqual(["appendonly", "yes"]);
    expect(await client.config("GET", "appendfsync")).toEqual(["appendfsync", "always"]);
    expect(await client.config("GET", "maxmemory-policy")).toEqual(["maxmemory-policy", "allkeys-lru"]);
  });

  test("can be disposed of while frozen, and leaves nothing", async () => {
    const { redis, client, dispose } = await setup();
    await client.set("kept", "no");
    const traces = await tracesOf(kind, redis, client);
    expect(await traces()).not.toEqual([]);
    await redis.freeze();
    await dispose();
    await expect(connectOnce(redis)).rejects.toThrow();
    expect(await traces()).toEqual([]);
  });
});

test("the variables decide the kind, and an unknown word is refused", async () => {
  expect(await chooseTestRedis({ ADRELAY_TEST_REDIS: "local", ADRELAY_REDIS_SERVER: "docker" })).toBe(
    "local",
  );
  expect(await chooseTestRedis({ ADRELAY_TEST_REDIS: "docker", ADRELAY_REDIS_SERVER: "path" })).toBe(
    "docker",
  );
  expect(await chooseTestRedis({ ADRELAY_REDIS_SERVER: "docker" })).toBe("docker");
  expect(await chooseTestRedis({ ADRELAY_REDIS_SERVER: "embedded" })).toBe("local");
  await expect(chooseTestRedis({ ADRELAY_TEST_REDIS: "podman" })).rejects.toThrow("must be docker or local");
});

test.for(PINNED_SERVERS)(
  "a test can have $title, whatever the other tests run on",
  async ({ way, title }, { skip }) => {
    const pinned = await pinnedTestEnv(way, () => {});
    if (pinned.kind !== "ready") {
      expect(pinned).toMatchObject({ kind: "not_here" });
      return skip(pinned.why);
    }
    const redis = await startTestRedis([], pinned.env);
    onTestFinished(() => redis.dispose());
    const client = new Redis(redis.url);
    onTestFinished(() => client.disconnect());
    const [name = "", version] = title.split(" ");
    expect(await client.info("server")).toContain(`${name.toLowerCase()}_version:${version}.`);
  },
);

test("without the socket of an engine the kind is local", async () => {
  expect(await chooseTestRedis({ DOCKER_HOST: "unix:///nowhere/docker.sock" })).toBe("local");
});

async function connectOnce({ url }: TestRedis): Promise<void> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null, maxRetriesPerRequest: 0 });
  client.on("error", () => {});
  onTestFinished(() => client.disconnect());
  await client.connect();
}

async function hanging(): Promise<"hanging"> {
  await new Promise((done) => setTimeout(done, HANG_MS));
  return "hanging";
}

/** Returns what is left of the data folder, or of the container and its volumes. */
async function tracesOf(kind: TestRedisKind, { port }: TestRedis, client: Redis) {
  if (kind === "local") {
    const [, folder] = await client.config("GET", "dir");
    return async () => [String(folder)].filter((path) => existsSync(path));
  }
  const { dockerode } = (await getContainerRuntimeClient()).container;
  const all = await dockerode.listContainers({ all: true });
  const container = all.find(({ Ports }) => Ports.some(({ PublicPort }) => PublicPort === port));
  const volumes = (container?.Mounts ?? []).map(({ Name }) => Name);
  return async () => {
    const containers = await dockerode.listContainers({ all: true });
    const { Volumes } = await dockerode.listVolumes();
    const names = [...containers.map(({ Id }) => Id), ...Volumes.map(({ Name }) => Name)];
    return names.filter((name) => name === container?.Id || volumes.includes(name));
  };
}

async function hasLocalServer(): Promise<boolean> {
  return (await findRedisServer({ log: () => {} })).kind === "binary";
}

async function hasEngine(): Promise<boolean> {
  const { ADRELAY_TEST_REDIS: forced, ADRELAY_REDIS_SERVER: _, ...env } = process.env;
  return forced === "docker" || (await chooseTestRedis(env)) === "docker";
}
