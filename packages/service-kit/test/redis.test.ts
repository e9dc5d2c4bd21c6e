/** Connections and durability against a real Redis. */
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { pino } from "pino";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import {
  connectRedis,
  createRegistry,
  explainAway,
  guardRedis,
  loadSyncPolicy,
  reportDurability,
  reportMemory,
} from "../src/index.ts";

const log = pino({ level: "silent" });
/** For what a busy machine does late. */
const SOON = { timeout: 10_000 };
let server: TestRedis;

beforeEach(async () => {
  server = await startTestRedis();
});
afterEach(() => server.dispose());

test.each([
  ["CONFIG SET appendonly no", "require", "appendonly yes"],
  ["CONFIG SET maxmemory-policy allkeys-lru", "require", "noeviction"],
  ["CONFIG SET appendfsync everysec", "strict", "appendfsync"],
] as const)("after %s, mode %s refuses Redis and says what to set", async (line, mode, words) => {
  const redis = connectRedis(server.url, "request", log);
  try {
    await guardRedis(redis, { mode }, log);
    const [name = "", ...args] = line.split(" ");
    await redis.call(name, ...args);
    await expect(guardRedis(redis, { mode }, log)).rejects.toThrow(words);
    expect((await guardRedis(redis, { mode: "warn" }, log)).isDurable).toBe(true);
  } finally {
    redis.disconnect();
  }
});

test("a Redis that has lost its durability is noticed after a reconnection", async () => {
  const redis = connectRedis(server.url, "request", log);
  try {
    const guard = await guardRedis(redis, { mode: "require" }, log);
    expect(guard.isDurable).toBe(true);
    expect(guard.warnings()).toEqual({});
    await redis.config("SET", "maxmemory-policy", "allkeys-lru");
    const isChecked = new Promise((resolve) => redis.once("ready", resolve));
    redis.disconnect(true);
    await isChecked;
    await expect.poll(() => guard.isDurable, SOON).toBe(false);
    await expect
      .poll(() => guard.warnings(), SOON)
      .toEqual({
        redis_durability:
          "maxmemory-policy is allkeys-lru: set noeviction. Until that is fixed, acknowledgments get 503",
      });
  } finally {
    redis.disconnect();
  }
});

test("the durability metric is 0 while Redis is away and 1 when it is back", async () => {
  const redis = connectRedis(server.url, "request", log);
  try {
    const registry = createRegistry();
    reportDurability(registry, await guardRedis(redis, { mode: "require" }, log));
    const shown = () => registry.getSingleMetricAsString("adrelay_redis_durable");
    expect(await shown()).toMatch(/ 1$/);
    await server.crash();
    await expect.poll(shown, SOON).toMatch(/ 0$/);
    await server.restart();
    await expect.poll(shown, SOON).toMatch(/ 1$/);
  } finally {
    redis.disconnect();
  }
});

test("a request connection fails fast while Redis is away and works again within two seconds", async () => {
  const redis = connectRedis(server.url, "request", log);
  try {
    await guardRedis(redis, { mode: "require" }, log);
    await server.crash();
    const startedAtMs = performance.now();
    await expect(redis.ping()).rejects.toThrow();
    expect(performance.now() - startedAtMs).toBeLessThan(1900);
    await server.restart();
    await expect.poll(() => redis.ping().catch(() => "away"), { timeout: 2000 }).toBe("PONG");
  } finally {
    redis.disconnect();
  }
});

test("a connection that is refused for another reason by now says so, each reason once", async () => {
  const lines: Record<string, unknown>[] = [];
  const sink = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const redis = connectRedis(server.url, "request", pino({}, sink));
  const admin = connectRedis(server.url, "subscriber", log);
  try {
    await guardRedis(redis, { mode: "require" }, log);
    await admin.config("SET", "requirepass", "another");
    redis.disconnect(true);
    await expect.poll(() => lines.map(({ why }) => why), SOON).toEqual([expect.stringContaining("password")]);
    await admin.config("SET", "maxclients", "1");
    await expect
      .poll(() => lines.map(({ why }) => why), SOON)
      .toEqual([expect.stringContaining("password"), expect.stringContaining("maxclients")]);
    await admin.config("SET", "maxclients", "100");
    await admin.config("SET", "requirepass", "");
    await expect.poll(() => lines.at(-1)?.["event"], SOON).toBe("redis_back");
    expect(lines.map(({ event }) => event)).toEqual(["redis_away", "redis_away", "redis_back"]);
  } finally {
    redis.disconnect();
    admin.disconnect();
  }
});

test("a rediss:// URL of a port without TLS is named", async () => {
  const redis = connectRedis(server.url.replace("redis:", "rediss:"), "request", log);
  try {
    expect(await explainAway(redis, undefined)).toContain("must begin with redis://");
  } finally {
    redis.disconnect();
  }
});

test("a worker's command waits while Redis turns its connection down", async () => {
  const redis = connectRedis(server.url, "worker", log);
  const admin = connectRedis(server.url, "subscriber", log);
  try {
    await admin.config("SET", "requirepass", "another");
    const isTurnedDown = new Promise((resolve) => redis.on("error", resolve));
    redis.disconnect(true);
    const reply = redis.echo("a text");
    expect(await isTurnedDown).toMatchObject({ message: expect.stringContaining("NOAUTH") });
    await admin.config("SET", "requirepass", "");
    expect(await reply).toBe("a text");
  } finally {
    redis.disconnect();
    admin.disconnect();
  }
});

test("a Redis that doesn't answer has no known sync policy", async () => {
  const redis = connectRedis(server.url, "request", log);
  await guardRedis(redis, { mode: "strict" }, log);
  await server.freeze();
  await expect(loadSyncPolicy(redis)).rejects.toThrow();
  await server.thaw();
  redis.disconnect();
});

test("a Redis that forbids CONFIG has no sync policy, and mode strict refuses it", async () => {
  const redis = connectRedis(server.url, "request", log);
  await guardRedis(redis, { mode: "strict" }, log);
  await redis.acl("SETUSER", "default", "-config");
  expect(await loadSyncPolicy(redis)).toBeUndefined();
  await expect(guardRedis(redis, { mode: "strict" }, log)).rejects.toThrow("appendfsync");
  redis.disconnect();
});

test("commands of one turn keep their order, and each has its own result", async () => {
  const redis = connectRedis(server.url, "request", log);
  try {
    await guardRedis(redis, { mode: "require" }, log);
    const replies = await Promise.allSettled([
      redis.set("k", "1"),
      redis.hget("k", "f"),
      redis.incr("k"),
      redis.get("k"),
    ]);
    expect(replies).toEqual([
      { status: "fulfilled", value: "OK" },
      {
        status: "rejected",
        reason: expect.objectContaining({ message: expect.stringContaining("WRONGTYPE") }),
      },
      { status: "fulfilled", value: 2 },
      { status: "fulfilled", value: "2" },
    ]);
  } finally {
    redis.disconnect();
  }
});

test("a command sent right before the end of its connection still reaches Redis", async () => {
  const redis = connectRedis(server.url, "request", log);
  await guardRedis(redis, { mode: "require" }, log);
  redis.set("last", "words").catch(() => {});
  redis.disconnect();
  const other = connectRedis(server.url, "subscriber", log);
  await expect.poll(() => other.get("last"), SOON).toBe("words");
  other.disconnect();
});

test("answers that arrived while the process was blocked are accepted in spite of the timeout", async () => {
  const redis = connectRedis(server.url, "request", log);
  try {
    await new Promise((done) => redis.once("ready", done));
    const replies = Array.from({ length: 100 }, () => redis.ping());
    const untilMs = performance.now() + 1000;
    while (performance.now() < untilMs) {}
    expect(new Set(await Promise.all(replies))).toEqual(new Set(["PONG"]));
  } finally {
    redis.disconnect();
  }
});

test("while Redis is frozen each command fails after its timeout, and later commands work", async () => {
  const redis = connectRedis(server.url, "request", log);
  try {
    await new Promise((done) => redis.once("ready", done));
    const startedAtMs = performance.now();
    await server.freeze();
    const early = expect(redis.ping()).rejects.toThrow("Command timed out");
    await new Promise((done) => setTimeout(done, 600));
    const late = redis.ping();
    await early;
    const durationMs = performance.now() - startedAtMs;
    expect(durationMs).toBeGreaterThan(600);
    expect(durationMs).toBeLessThan(1900);
    await server.thaw();
    expect(await late).toBe("PONG");
    expect(await redis.ping()).toBe("PONG");
  } finally {
    await server.thaw();
    redis.disconnect();
  }
});

/** A proxy to the server that changes the bytes of its answers, and not their number. */
async function startRewriting(rewrite: (text: string) => string): Promise<string> {
  const proxy = createServer((client) => {
    const target = connect(server.port, "127.0.0.1");
    client.pipe(target);
    target.on("data", (bytes) => client.write(rewrite(bytes.toString("latin1")), "latin1"));
    for (const socket of [client, target]) {
      socket.on("error", () => {});
      socket.on("close", () => [client, target].map((each) => each.destroy()));
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void proxy.close());
  return `redis://127.0.0.1:${Object(proxy.address()).port}`;
}

test("without maxmemory, the machine's memory is the limit, as it is for intake", async () => {
  const redis = connectRedis(server.url, "request", log);
  onTestFinished(() => redis.disconnect());
  const guard = await guardRedis(redis, { mode: "warn" }, log);
  await redis.config("SET", "maxmemory", "0");
  await guard.check();
  const machineBytes = Number(/^total_system_memory:(\d+)/m.exec(await redis.info("memory"))?.[1]);
  const registry = createRegistry();
  reportMemory(registry, guard);
  expect(await registry.metrics()).toContain(`adrelay_redis_memory_limit_bytes ${machineBytes}\n`);
});

test("a Redis older than 6.2 is refused by name, and only logged in mode warn", async () => {
  const url = await startRewriting((text) =>
    text
      .replaceAll("valkey_version", "hidden_version")
      .replaceAll(
        /redis_version:([\d.]+)/g,
        (_line, version: string) => `redis_version:${"6.0.".padEnd(version.length, "9")}`,
      ),
  );
  const redis = connectRedis(url, "request", log);
  onTestFinished(() => redis.disconnect());
  await expect(guardRedis(redis, { mode: "require" }, log)).rejects.toThrow(
    /Redis 6\.0\.9+ is not supported: 6\.2 is the oldest version/,
  );
  expect((await guardRedis(redis, { mode: "warn" }, log)).isDurable).toBe(true);
});

test.each(["request", "worker"] as const)(
  "a %s connection that meets a replica is replaced, at most once a second",
  async (role) => {
    const redis = connectRedis(server.url, role, log);
    onTestFinished(() => redis.disconnect());
    await once(redis, "ready");
    await redis.replicaof("127.0.0.1", 1);
    const closes: number[] = [];
    redis.on("close", () => closes.push(performance.now()));
    const isBack = once(redis, "ready");
    await expect(redis.set("k", "v")).rejects.toThrow("READONLY");
    await isBack;
    await expect(redis.set("k", "v")).rejects.toThrow("READONLY");
    expect(await redis.get("k")).toBeNull();
    expect(closes).toHaveLength(1);
  },
);
