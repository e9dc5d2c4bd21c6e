/** One test for each fault that was found and fixed. It repeats what made the fault visible. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { freeLanePort, startTestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  eventually,
  fetchMetrics,
  filled,
  pause,
  relayCaller,
  startRelayStack,
  startScriptedProvider,
  startSocketProxy,
  sumOf,
  TEST_ADMIN_TOKEN,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { describe, expect, type TestContext, test } from "vitest";

/** A Redis and a provider for one test, which end with the test. */
async function startPeers({ onTestFinished }: TestContext) {
  const [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  onTestFinished(async () => {
    await provider.close();
    await redis.dispose();
  });
  return { redis, provider };
}

/** A stack of its own for one test, which ends with the test. */
async function setup(context: TestContext) {
  const { redis, provider } = await startPeers(context);
  const proxy = await startSocketProxy(redis.port);
  const stack = await startRelayStack({
    redis: { url: `redis://127.0.0.1:${proxy.port}` },
    providerUrl: provider.url,
  });
  context.onTestFinished(async () => {
    await stack.stop();
    await proxy.close();
  });
  const caller = relayCaller(stack.gatewayUrl);
  return {
    redis,
    provider,
    proxy,
    stack,
    caller,
    injected: () => caller.injectUntilFilled(),
    stateOf: async (id: string) => (await caller.lookUp(id)).body["state"],
  };
}

// These mostly wait, so some run at the same time. The others below time a stop or weigh memory.
describe.concurrent("tests that mostly wait", () => {
  test("a dead letter replayed right after its death is delivered", async (context) => {
    const { provider, stack, caller, injected } = await setup(context);
    provider.onAcknowledge((_post, count) =>
      count === 0 ? { kind: "answer", status: 422 } : acknowledged(),
    );
    const replay = (id: string) =>
      fetch(`${stack.gatewayOpsUrl}/admin/v1/acknowledgments/${id}/replay`, {
        method: "POST",
        headers: { Authorization: `Bearer ${TEST_ADMIN_TOKEN}` },
      });
    const lane = async () => {
      for (let at = 0; at < 20; at += 1) {
        const id = await injected();
        await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "respond-async" } });
        await eventually(async () => expect((await replay(id)).status).toBe(200));
      }
    };
    await Promise.all([lane(), lane(), lane(), lane()]);
    const states = ["queued", "dead", "delivered"];
    await eventually(async () => {
      const samples = await fetchMetrics(stack.gatewayOpsUrl);
      expect(states.map((state) => sumOf(samples, "adrelay_acknowledgments", { state }))).toEqual([0, 0, 80]);
    }, 10_000);
  });

  test("a provider that hung gets no injections of answered callers afterwards", async (context) => {
    const { provider, caller } = await setup(context);
    provider.onStart(() => ({ kind: "hang" }));
    const limit = { headers: { "X-Adrelay-Timeout-Ms": "500" } };
    await Promise.all(Array.from({ length: 300 }, () => caller.inject(limit)));
    // What was sent before the callers were answered has come once no more comes.
    const before = await eventually(async () => {
      const count = provider.posts.length;
      await pause(500);
      expect(provider.posts).toHaveLength(count);
      return count;
    });
    provider.onStart(() => filled());
    // Well within the 30 s for which the gateway would read the provider's late answers.
    expect((await caller.inject({ headers: { "X-Adrelay-Timeout-Ms": "10000" } })).status).toBe(200);
    await pause(300);
    expect(provider.posts.length).toBe(before + 1);
  });

  test("a slow Redis gets no acknowledgment before its durability is checked", async (context) => {
    const { redis, proxy, caller, injected } = await setup(context);
    const id = await injected();
    const notDurable = await startTestRedis(["--appendonly", "no"]);
    proxy.setReplyDelay(600);
    proxy.setTarget(notDurable.port);
    proxy.cut();
    await eventually(async () => expect((await caller.lookUp(id)).status).not.toBe(200));
    for (let at = 0; at < 20; at += 1) {
      const answer = await caller.acknowledge(id, "text", { headers: { Prefer: "respond-async" } });
      expect(answer.body).toMatchObject({ status: 503, code: "queue_unavailable" });
      proxy.setReplyDelay(at < 10 ? 600 : 0);
      await pause(20);
    }
    proxy.setTarget(redis.port);
    proxy.cut();
    await eventually(async () => expect((await caller.acknowledge(id, "text")).status).toBeLessThan(300));
    await notDurable.dispose();
  });

  test("silent connections to Redis are replaced within seconds", async (context) => {
    const { proxy, caller, injected, stateOf } = await setup(context);
    const id = await injected();
    proxy.swallow();
    await eventually(
      async () => expect((await caller.acknowledge(id, "text")).status).toBeLessThan(300),
      6000,
    );
    await eventually(async () => expect(await stateOf(id)).toBe("delivered"), 40_000);
  });

  test("a booking whose reply was cut off counts its attempt once", async (context) => {
    const { provider, proxy, caller, injected, stateOf } = await setup(context);
    provider.onAcknowledge((_post, count) => acknowledged(count === 0 ? "recoverable_error" : "ok"));
    for (let round = 0; round < 10; round += 1) {
      const id = await injected();
      const answer = caller.acknowledge(id, "text", { headers: { Prefer: "respond-async" } });
      await eventually(() => expect(provider.acknowledgmentsOf(id)).toHaveLength(1), 10_000);
      proxy.cut();
      await answer.catch(() => undefined);
      await eventually(async () => expect(await stateOf(id)).toBe("delivered"), 20_000);
      const { attempts } = (await caller.lookUp(id)).body;
      expect(attempts).toBeLessThanOrEqual(provider.acknowledgmentsOf(id).length);
    }
  });

  test("a Redis that becomes durable again gets acknowledgments without a reconnection", async (context) => {
    const { redis, proxy, caller, injected } = await setup(context);
    const admin = new Redis(redis.url);
    const id = await injected();
    await admin.config("SET", "appendonly", "no");
    proxy.cut();
    const statusOf = async () => (await caller.acknowledge(id, "text")).status;
    await eventually(async () => expect(await statusOf()).toBe(503));
    await pause(500);
    expect(await statusOf()).toBe(503);
    await admin.config("SET", "appendonly", "yes");
    await eventually(async () => expect(await statusOf()).toBeLessThan(300), 6000);
    admin.disconnect();
  });

  test.for(["stopped reading", "gone"] as const)(
    "a process whose log reader is %s still ends on SIGTERM",
    async (how, context) => {
      const { redis, provider } = await startPeers(context);
      const main = fileURLToPath(new URL("../apps/gateway/src/main.ts", import.meta.url));
      const port = await freeLanePort();
      const child = spawn(process.execPath, [main], {
        env: {
          PATH: process.env["PATH"],
          REDIS_URL: redis.url,
          API_KEYS: "key-for-this-test",
          PROVIDER_API_KEY: "k",
          PROVIDER_URL: provider.url,
          GATEWAY_PORT: String(port),
          GATEWAY_OPS_PORT: "0",
          SHUTDOWN_TIMEOUT_MS: "2000",
        },
        stdio: ["ignore", "pipe", "ignore"],
      });
      await once(child.stdout, "data");
      if (how === "gone") {
        child.stdout.destroy();
      } else {
        child.stdout.pause();
      }
      const url = `http://127.0.0.1:${port}/${"long-path".repeat(100)}`;
      for (let round = 0; round < 20; round += 1) {
        await Promise.all(Array.from({ length: 100 }, () => fetch(url)));
      }
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      expect(await exited).toEqual([0, null]);
    },
  );
});

test("SIGTERM during a long wait answers the caller, and the gateway ends soon", async (context) => {
  const { provider, stack, caller, injected } = await setup(context);
  provider.onAcknowledge(() => ({ kind: "hang" }));
  const id = await injected();
  const waiting = caller.acknowledge(id, "text", { headers: { Prefer: "wait=30" } });
  await eventually(() => expect(provider.acknowledgmentsOf(id)).toHaveLength(1));
  const startedAtMs = performance.now();
  const exit = stack.apps.get("gateway")?.stop();
  expect((await waiting).body).toMatchObject({ status: "recoverable_error" });
  expect(await exit).toBe(0);
  expect(performance.now() - startedAtMs).toBeLessThan(2000);
});

test("SIGTERM during a long injection answers its caller in time", async (context) => {
  const { provider, stack, caller } = await setup(context);
  provider.onStart(() => ({ kind: "hang" }));
  const waiting = caller.inject({ headers: { "X-Adrelay-Timeout-Ms": "30000" } });
  await eventually(() => expect(provider.posts).toHaveLength(1));
  const exit = stack.apps.get("gateway")?.stop();
  expect((await waiting).headers.get("X-Adrelay-Fallback")).toBe("timeout");
  expect(await exit).toBe(0);
});

test("a gateway keeps no answers of injections in memory", async (context) => {
  const { provider, stack, caller } = await setup(context);
  const prompt = "x".repeat(50_000);
  provider.onStart(() => filled({ enhanced_prompt: prompt }));
  const usedBytes = async () => {
    const samples = await fetchMetrics(stack.gatewayOpsUrl);
    return sumOf(samples, "nodejs_external_memory_bytes") + sumOf(samples, "nodejs_heap_size_used_bytes");
  };
  const lane = async () => {
    for (let at = 0; at < 250; at += 1) {
      await caller.inject();
    }
  };
  const before = await usedBytes();
  await Promise.all(Array.from({ length: 12 }, lane));
  // 3000 answers of 50 kB are 150 MB as bytes, and as much again parsed.
  await eventually(async () => {
    // More injections, so that the garbage collector runs.
    await Promise.all(Array.from({ length: 12 }, () => caller.inject()));
    expect((await usedBytes()) - before).toBeLessThan(120_000_000);
  });
});
