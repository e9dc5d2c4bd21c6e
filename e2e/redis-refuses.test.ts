/**
 * Guards the promise that a Redis that answers but can't be used is named: by readiness, the doctor, one log line a
 * second, or at the start; and that the relay goes on by itself as soon as it can.
 * Most tests have their own Redis, so some run at the same time.
 */
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  AppStartError,
  acknowledged,
  eventually,
  fetchMetrics,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  type SocketProxy,
  startApp,
  startRelayStack,
  startScriptedProvider,
  startSocketProxy,
  TEST_ADMIN_TOKEN,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, type TestContext, test } from "vitest";
import { LogWatch } from "./chaos/log-watch.ts";

const ASYNC = { headers: { Prefer: "respond-async" } };
/** Every right but those that a test takes away. */
const ALL_RIGHTS = ["~*", "&*", "+@all"];

/** A Redis and a provider for one test, which end with the test. */
async function setup({ onTestFinished }: TestContext) {
  const [server, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  const redis = adminOf(server);
  provider.onAcknowledge(() => acknowledged());
  onTestFinished(async () => {
    await provider.close();
    redis.disconnect();
    await server.dispose();
  });
  return {
    server,
    redis,
    onTestFinished,
    startStack: async (url: string, env: Record<string, string> = {}) => {
      const stack = await startRelayStack({ redis: { url }, providerUrl: provider.url, env });
      onTestFinished(() => stack.stop());
      return { stack, caller: relayCaller(stack.gatewayUrl) };
    },
    /** The URL of a user with these rules. */
    urlOfUser: async (...rules: string[]) => {
      await redis.call("ACL", "SETUSER", "relay", "reset", "on", ">secret", ...rules);
      return server.url.replace("redis://", "redis://relay:secret@");
    },
  };
}

function adminOf({ url }: TestRedis): Redis {
  const admin = new Redis(url);
  admin.on("error", () => {});
  return admin;
}

/** The error that ends a worker's start on this Redis. */
async function startFault(url: string, more: Record<string, string> = {}): Promise<string> {
  const env = { REDIS_URL: url, PROVIDER_API_KEY: "k", WORKER_OPS_PORT: "0", ...more };
  const error = await startApp("worker", env).then(
    (app) => app.stop(),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(AppStartError);
  return error instanceof AppStartError ? error.stderr : "";
}

async function readinessOf(url: string) {
  const response = await fetch(`${url}/readyz`);
  return { status: response.status, body: Object(await response.json()) };
}

async function examine(stack: RelayStack): Promise<Map<string, { status: string; detail: string }>> {
  const response = await fetch(`${stack.gatewayOpsUrl}/admin/v1/doctor`, {
    headers: { Authorization: `Bearer ${TEST_ADMIN_TOKEN}` },
  });
  const { checks } = Object(await response.json());
  return new Map(checks.map((check: { name: string }) => [check.name, check]));
}

async function isDelivered(caller: RelayCaller): Promise<void> {
  const id = crypto.randomUUID();
  expect((await caller.acknowledgeUntilAccepted(id, "text", ASYNC)).status).toBe(201);
  await eventually(async () => expect((await caller.lookUp(id)).body).toMatchObject({ state: "delivered" }));
}

const withSettings = (url: string) => ({ REDIS_URL: url, REDIS_DURABILITY: "warn" });

describe("a Redis that can't be used for a while", () => {
  let server: TestRedis;
  let redis: Redis;
  let provider: ScriptedProvider;
  let stack: RelayStack;
  let caller: RelayCaller;

  beforeAll(async () => {
    [server, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
    redis = adminOf(server);
    stack = await startRelayStack({ redis: server, providerUrl: provider.url });
    caller = relayCaller(stack.gatewayUrl);
  });
  afterAll(async () => {
    await stack.stop();
    redis.disconnect();
    await Promise.all([provider.close(), server.dispose()]);
  });
  beforeEach(() => isDelivered(caller));

  test.for([
    {
      what: "a replica",
      refuse: (redis: Redis) => redis.replicaof("127.0.0.1", 1),
      relent: (redis: Redis) => redis.replicaof("NO", "ONE"),
      words: /replica.*REDIS_URL must lead to the primary/,
    },
    {
      what: "short of replicas",
      refuse: (redis: Redis) => redis.config("SET", "min-replicas-to-write", "1"),
      relent: (redis: Redis) => redis.config("SET", "min-replicas-to-write", "0"),
      words: /min-replicas-to-write/,
    },
    {
      what: "without rights since a moment ago",
      refuse: (redis: Redis) => redis.call("ACL", "SETUSER", "default", "-hset"),
      relent: (redis: Redis) => redis.call("ACL", "SETUSER", "default", "+hset"),
      words: /docs\/operations\.md/,
    },
  ])(
    "a Redis that is $what makes both processes not ready, and is named",
    async ({ refuse, relent, words }) => {
      await refuse(redis);
      for (const url of [stack.gatewayOpsUrl, stack.workerOpsUrl]) {
        await eventually(async () => {
          const { status, body } = await readinessOf(url);
          expect([status, body.checks.redis]).toEqual([503, "failing"]);
          expect(body.warnings.redis_writes).toMatch(words);
        });
        expect((await fetchMetrics(url)).get("adrelay_redis_durable")).toBe(0);
      }
      // Injections need no Redis.
      const injections = await fetch(`${stack.gatewayOpsUrl}/readyz/injections`);
      expect(injections.status).toBe(200);
      expect(await injections.json()).toMatchObject({
        status: "ready",
        checks: {},
        warnings: { redis: expect.stringContaining("injections pass") },
      });
      await eventually(async () => {
        const checks = await examine(stack);
        expect(checks.get("redis_writes")).toMatchObject({
          status: "fail",
          detail: expect.stringMatching(words),
        });
        expect(checks.get("workers")?.status).toBe("warn");
      });
      await relent(redis);
      await eventually(() => isDelivered(caller), 10_000);
      for (const url of [stack.gatewayOpsUrl, stack.workerOpsUrl]) {
        await eventually(async () => expect((await readinessOf(url)).status).toBe(200));
      }
    },
  );
});

describe.concurrent("a Redis that can't be used", () => {
  test("refused acknowledgments make one log line a second, with their number", async (context) => {
    const { server, redis, startStack } = await setup(context);
    const { stack, caller } = await startStack(server.url);
    await redis.replicaof("127.0.0.1", 1);
    const refused: number[] = [];
    const untilMs = performance.now() + 2500;
    while (performance.now() < untilMs) {
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => caller.acknowledge(crypto.randomUUID(), "text", ASYNC)),
      );
      refused.push(...answers.map(({ status }) => status));
    }
    expect(new Set(refused)).toEqual(new Set([503]));
    const lines = () =>
      (stack.apps.get("gateway")?.logs ?? []).filter(({ event }) => event === "intake_failed");
    await eventually(() => {
      const counted = lines().reduce((sum, { count }) => sum + Number(count), 0);
      expect(counted).toBe(refused.length);
    });
    expect(lines().length).toBeLessThanOrEqual(6);
  });

  test("untracked injections make one log line a second, and each is named by the line of its request", async (context) => {
    const { server, startStack } = await setup(context);
    const { stack, caller } = await startStack(server.url);
    await isDelivered(caller);
    await server.crash();
    const ids: string[] = [];
    for (const _ of [1, 2, 3]) {
      const answers = await Promise.all(Array.from({ length: 20 }, () => caller.inject()));
      ids.push(...answers.map(({ body }) => String(body["ad_response_id"])));
    }
    const logs = (name: string) =>
      (stack.apps.get("gateway")?.logs ?? []).filter(({ event }) => event === name);
    await eventually(() => {
      const lines = logs("injection_untracked");
      expect(lines.reduce((sum, { count }) => sum + Number(count), 0)).toBe(ids.length);
      expect(lines.length).toBeLessThanOrEqual(6);
      expect(lines.map(({ err }) => Object(err).message)).toContain("Redis is away");
    });
    // As the chaos run reads it.
    const watch = new LogWatch(undefined);
    for (const line of logs("request")) {
      watch.read("gateway", JSON.stringify(line));
    }
    expect(watch.untracked).toEqual(new Set(ids));
    await server.restart();
  });

  test("after a fail-over behind one address, connections to the old primary are replaced", async (context) => {
    const { server, redis, startStack, onTestFinished } = await setup(context);
    const second = await startTestRedis();
    const secondAdmin = adminOf(second);
    onTestFinished(() => secondAdmin.disconnect());
    const proxy: SocketProxy = await startSocketProxy(server.port);
    onTestFinished(async () => {
      await proxy.close();
      await second.dispose();
    });
    const { caller } = await startStack(`redis://127.0.0.1:${proxy.port}`);
    await isDelivered(caller);
    await Promise.all(
      [redis, secondAdmin].map((admin) => admin.config("SET", "repl-diskless-sync-delay", "0")),
    );
    await secondAdmin.replicaof("127.0.0.1", server.port);
    await eventually(async () =>
      expect(await secondAdmin.info("replication")).toContain("master_link_status:up"),
    );
    await secondAdmin.replicaof("NO", "ONE");
    proxy.setTarget(second.port);
    await redis.replicaof("127.0.0.1", second.port);
    await eventually(() => isDelivered(caller), 10_000);
  });

  test("a Redis without room for connections is named by a process that starts and by the doctor", async (context) => {
    const { server, redis, startStack, onTestFinished } = await setup(context);
    const { stack, caller } = await startStack(server.url);
    await isDelivered(caller);
    // Connections that exist already are kept.
    await redis.config("SET", "maxclients", "1");
    const worker = await startApp("worker", {
      ...withSettings(server.url),
      PROVIDER_API_KEY: "k",
      WORKER_OPS_PORT: "0",
    });
    onTestFinished(async () => void (await worker.stop()));
    for (const event of ["redis_away", "redis_away_at_start"]) {
      expect(worker.logs).toContainEqual(
        expect.objectContaining({ event, why: expect.stringContaining("maxclients") }),
      );
    }
    expect((await examine(stack)).get("redis_connections")?.status).toBe("fail");
    await eventually(async () => {
      const clients = Number(/^connected_clients:(\d+)/m.exec(await redis.info("clients"))?.[1]);
      await redis.config("SET", "maxclients", String(clients + 1));
      expect((await examine(stack)).get("redis_connections")?.status).toBe("warn");
    });
    await redis.config("SET", "maxclients", "1");
    await redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await eventually(async () =>
      expect((await examine(stack)).get("redis")?.detail).toContain("raise maxclients"),
    );
    await redis.config("SET", "maxclients", "1000");
    await eventually(() => isDelivered(caller), 10_000);
  });

  test("a database that Redis lacks ends the start, and nothing is written elsewhere", async (context) => {
    const { server, redis } = await setup(context);
    expect(await startFault(`${server.url}/99`)).toContain("doesn't have the database of REDIS_URL");
    expect(await startFault(`${server.url}/99`, { REDIS_DURABILITY: "warn" })).toContain("database");
    expect(await redis.dbsize()).toBe(0);
  });

  test("a database other than 0 is used if Redis has it", async (context) => {
    const { server, redis, startStack } = await setup(context);
    const { caller } = await startStack(`${server.url}/3`);
    await isDelivered(caller);
    expect(await redis.dbsize()).toBe(0);
  });

  test("a user without EVAL or another command that is needed ends the start by name", async (context) => {
    const { urlOfUser } = await setup(context);
    expect(await startFault(await urlOfUser(...ALL_RIGHTS, "-eval"))).toMatch(/may not run .*\beval\b/);
    const fault = await startFault(await urlOfUser(...ALL_RIGHTS, "-zadd", "-xadd"), {
      REDIS_DURABILITY: "warn",
    });
    expect(fault).toMatch(/may not run xadd, zadd/);
  });

  test("without INFO, CONFIG shows whether Redis is durable, and the relay works", async (context) => {
    const { startStack, urlOfUser } = await setup(context);
    const { stack, caller } = await startStack(await urlOfUser(...ALL_RIGHTS, "-info"));
    await isDelivered(caller);
    expect((await examine(stack)).get("redis_rights")).toMatchObject({
      status: "warn",
      detail: expect.stringMatching(/may not run info/),
    });
    expect(stack.apps.get("worker")?.logs).toContainEqual(
      expect.objectContaining({ event: "redis_rights_missing", forbidden: ["info"] }),
    );
  });

  test("without INFO and CONFIG the start ends by name, and with REDIS_DURABILITY=warn the relay works", async (context) => {
    const { startStack, urlOfUser } = await setup(context);
    const url = await urlOfUser(...ALL_RIGHTS, "-info", "-config");
    expect(await startFault(url)).toMatch(/neither INFO nor CONFIG/);
    const { stack, caller } = await startStack(url, { REDIS_DURABILITY: "warn" });
    await isDelivered(caller);
    expect((await readinessOf(stack.gatewayOpsUrl)).status).toBe(200);
  });

  test("without channels a caller that waits still hears of the outcome, and no attempt fails", async (context) => {
    const { startStack, urlOfUser } = await setup(context);
    const { stack, caller } = await startStack(await urlOfUser("~*", "resetchannels", "+@all"));
    await eventually(() => isDelivered(caller));
    const answer = await caller.acknowledge(crypto.randomUUID(), "text", { headers: { Prefer: "wait=20" } });
    expect(answer).toMatchObject({ status: 200, body: { status: "ok" } });
    expect(answer.durationMs).toBeLessThan(5000);
    expect((await examine(stack)).get("redis_rights")).toMatchObject({
      status: "warn",
      detail: expect.stringContaining("subscribe"),
    });
    const events = (stack.apps.get("worker")?.logs ?? []).map(({ event }) => event);
    expect(events).not.toContain("attempt_failed");
  });

  test("a node of a cluster that doesn't hold the relay's keys is named", async (context) => {
    const { startStack, onTestFinished } = await setup(context);
    const node = await startTestRedis(["--cluster-enabled", "yes"]);
    onTestFinished(() => node.dispose());
    const { stack } = await startStack(node.url);
    await eventually(async () => {
      const { status, body } = await readinessOf(stack.gatewayOpsUrl);
      expect(status).toBe(503);
      expect(body.warnings.redis_writes).toContain("cluster");
    });
  });
});
