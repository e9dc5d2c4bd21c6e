/**
 * Guards the promise that a full Redis drains by itself: intake stops, and what was accepted goes out at any fill. With
 * real processes, on the oldest and on the newest server that can be fetched.
 */
import { PINNED_SERVERS, pinnedTestEnv, startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  eventually,
  fetchMetrics,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  sumOf,
  TEST_ADMIN_TOKEN,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const ASYNC = { headers: { Prefer: "respond-async" } };
const TEXT = "a text of a model ".repeat(300);
const QUEUED = 300;

const servers = await Promise.all(
  PINNED_SERVERS.map(async ({ way, title }) => ({ title, ...(await pinnedTestEnv(way, () => {})) })),
);

test.for(servers.filter(({ kind }) => kind !== "ready"))(
  "on $title nothing is tested: $why",
  ({ kind }, { skip }) => {
    expect(kind).toBe("not_here");
    skip();
  },
);

describe.each(servers.filter((server) => server.kind === "ready"))("on $title", ({ env }) => {
  let server: TestRedis;
  let redis: Redis;
  let provider: ScriptedProvider;
  let stack: RelayStack;
  let caller: RelayCaller;

  beforeEach(async () => {
    [server, provider] = await Promise.all([startTestRedis([], env), startScriptedProvider()]);
    redis = new Redis(server.url);
    redis.on("error", () => {});
    const settings = { QUOTA_UNKNOWN_BYTES: "off" };
    stack = await startRelayStack({ redis: server, providerUrl: provider.url, env: settings });
    caller = relayCaller(stack.gatewayUrl);
    provider.onAcknowledge(() => acknowledged());
  });
  afterEach(async () => {
    await stack.stop();
    await provider.close();
    redis.disconnect();
    await server.dispose();
  });

  /** Sends acknowledgments, and takes the rest of its memory from Redis. Returns the ids that got a 2xx. */
  const fill = async (): Promise<string[]> => {
    const ids = Array.from({ length: QUEUED }, () => crypto.randomUUID());
    const left = ids.values();
    const send = async (): Promise<void> => {
      for (const id of left) {
        expect((await caller.acknowledgeUntilAccepted(id, TEXT, ASYNC)).status).toBe(201);
      }
    };
    await Promise.all(Array.from({ length: 8 }, send));
    // What Redis uses falls as the buffers of its connections go, so each look sets the limit anew.
    await eventually(async () => {
      const used = Number(/^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1]);
      await redis.config("SET", "maxmemory", String(Math.round(0.97 * used)));
      const id = crypto.randomUUID();
      const { status, body } = await caller.acknowledge(id, TEXT, ASYNC);
      if (status === 201) {
        ids.push(id);
      }
      expect(body["code"]).toBe("storage_full");
    });
    return ids;
  };
  const delivered = async () =>
    sumOf(await fetchMetrics(stack.workerOpsUrl), "adrelay_acknowledgments_delivered_total");
  const readiness = async (url: string) => {
    const response = await fetch(`${url}/readyz`);
    return { status: response.status, body: Object(await response.json()) };
  };
  const doctor = async () => {
    const response = await fetch(`${stack.gatewayOpsUrl}/admin/v1/doctor`, {
      headers: { Authorization: `Bearer ${TEST_ADMIN_TOKEN}` },
    });
    const { checks } = Object(await response.json());
    return new Map<string, { status: string; detail: string }>(
      checks.map((check: { name: string }) => [check.name, check]),
    );
  };

  test("what was queued while no worker ran goes out once one runs, and nothing new is taken meanwhile", async () => {
    await stack.crash("worker");
    const accepted = await fill();
    const gateway = stack.apps.get("gateway");
    await eventually(async () => {
      const { status, body } = await readiness(stack.gatewayOpsUrl);
      expect([status, body.checks.redis]).toEqual([503, "failing"]);
      expect(body.warnings.redis_writes).toContain("maxmemory");
    });
    expect((await fetchMetrics(stack.gatewayOpsUrl)).get("adrelay_redis_durable")).toBe(0);
    expect((await doctor()).get("redis_writes")).toMatchObject({ status: "fail" });
    expect(gateway?.logs).toContainEqual(
      expect.objectContaining({ level: "error", event: "redis_refuses_writes" }),
    );
    await stack.start("worker");
    expect((await readiness(stack.workerOpsUrl)).status).toBe(200);
    await eventually(async () => expect(await delivered()).toBe(accepted.length));
    await eventually(async () => expect((await readiness(stack.gatewayOpsUrl)).status).toBe(200));
    // How much room there is, the gateway asks once a second.
    expect((await caller.acknowledgeUntilAccepted(crypto.randomUUID(), TEXT, ASYNC)).status).toBe(201);
    expect(gateway?.logs).toContainEqual(expect.objectContaining({ event: "redis_accepts_writes" }));
  });

  test("what was queued while the provider was away goes out once it is back", async () => {
    provider.onAcknowledge(() => ({ kind: "answer", status: 503 }));
    const accepted = await fill();
    // Less room than what is there: a share that is used up by something else.
    await redis.config("SET", "maxmemory", "1");
    await eventually(async () => {
      const open = sumOf(await fetchMetrics(stack.workerOpsUrl), "adrelay_provider_circuit_open");
      expect(open).toBe(1);
    });
    provider.onAcknowledge(() => acknowledged());
    await eventually(async () => expect(await delivered()).toBe(accepted.length));
  });
});
