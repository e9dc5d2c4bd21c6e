/** With faulty settings or a Redis that isn't durable an app doesn't start. It reports all faults together. */
import { startTestRedis } from "@adrelay/dev-servers";
import { type AppName, AppStartError, eventually, startApp } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { expect, test } from "vitest";

async function failure(
  app: AppName,
  env: Record<string, string>,
): Promise<{ exit: number | string; stderr: string }> {
  try {
    await (await startApp(app, env)).stop();
  } catch (error) {
    if (error instanceof AppStartError) {
      return error;
    }
  }
  throw new TypeError(`${app} started`);
}

test.each([
  [
    "gateway",
    { GATEWAY_PORT: "hunter2", ACK_WAIT_MS: "hunter2", UNKNOWN_ACK: "hunter2" },
    ["GATEWAY_PORT", "ACK_WAIT_MS", "UNKNOWN_ACK"],
  ],
  ["gateway", {}, ["API_KEYS", "PROVIDER_API_KEY"]],
  [
    "gateway",
    { API_KEYS: "a", PUBLISHERS_FILE: "/no/such", PROVIDER_API_KEY: "hunter2" },
    ["API_KEYS", "PUBLISHERS_FILE"],
  ],
  [
    "gateway",
    {
      GATEWAY_PORT: "99999",
      PROVIDER_API_KEY: "hunter2\n",
      API_KEY_HEADERS: "X Key",
      PROVIDER_URL: "http://h/?a=hunter2",
    },
    ["GATEWAY_PORT", "PROVIDER_API_KEY", "API_KEY_HEADERS", "PROVIDER_URL"],
  ],
  ["gateway", { GATEWAY_PORT: "99999" }, ["GATEWAY_PORT", "API_KEYS", "PROVIDER_API_KEY"]],
  [
    "worker",
    { RECORD_RETENTION: "0s", DEAD_LETTER_RETENTION: "999999999d" },
    ["RECORD_RETENTION", "DEAD_LETTER_RETENTION"],
  ],
  [
    "worker",
    { RETRY_SCHEDULE: "5", DELIVERY_MAX_AGE: "hunter2", REDIS_URL: "hunter2" },
    ["RETRY_SCHEDULE", "DELIVERY_MAX_AGE", "REDIS_URL"],
  ],
  [
    "ad-server",
    { AD_SERVER_PORT: "99999", AD_SERVER_FAULTS: "nonsense" },
    ["AD_SERVER_PORT", "AD_SERVER_FAULTS", "AD_SERVER_API_KEYS"],
  ],
] as const)("%s with %j names each faulty setting, shows no value, exits with 2", async (app, env, names) => {
  const { exit, stderr } = await failure(app, env);
  expect(exit).toBe(2);
  for (const name of names) {
    expect(stderr).toContain(name);
  }
  expect(stderr).not.toContain("hunter2");
});

test.each(["gateway", "worker", "ad-server"] as const)(
  "%s refuses a Redis without an append-only file",
  async (app) => {
    const redis = await startTestRedis(["--appendonly", "no"]);
    const env = { REDIS_URL: redis.url, API_KEYS: "k", PROVIDER_API_KEY: "k", AD_SERVER_API_KEYS: "k" };
    const ports = { GATEWAY_PORT: "0", GATEWAY_OPS_PORT: "0", WORKER_OPS_PORT: "0", AD_SERVER_PORT: "0" };
    const { exit, stderr } = await failure(app, { ...env, ...ports });
    expect(exit).toBe(1);
    expect(stderr).toContain("appendonly yes");
    const warning = await startApp(app, { ...env, ...ports, REDIS_DURABILITY: "warn" });
    expect(warning.logs).toContainEqual(
      expect.objectContaining({ event: "redis_not_durable", level: "warn" }),
    );
    expect(await warning.stop()).toBe(0);
    await redis.dispose();
  },
);

test("a gateway starts before Redis, and accepts acknowledgments once Redis runs", async () => {
  const redis = await startTestRedis();
  await redis.stop();
  const gateway = await startApp("gateway", {
    REDIS_URL: redis.url,
    API_KEYS: "k",
    PROVIDER_API_KEY: "k",
    PROVIDER_URL: "http://127.0.0.1:9",
    GATEWAY_PORT: "0",
    GATEWAY_OPS_PORT: "0",
  });
  const call = (path: string, body: unknown) =>
    fetch(`http://127.0.0.1:${String(gateway.listening["port"])}/api/ad-injection/${path}/`, {
      method: "POST",
      headers: { "X-Service-API-Key": "k", "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  const acknowledgment = { ad_response_id: "3f2b8c1e-9d4a-4c6b-8f10-0a1b2c3d4e5f", llm_response: "x" };
  expect((await call("start", { prompt: "x" })).headers.get("X-Adrelay-Fallback")).toBe("unreachable");
  expect((await call("acknowledge", acknowledgment)).status).toBe(503);
  await redis.restart();
  await eventually(async () => expect((await call("acknowledge", acknowledgment)).status).toBe(201), 5000);
  expect(await gateway.stop()).toBe(0);
  const client = new Redis(redis.url);
  expect(await client.hget("{adrelay:0}:totals", "accepted|default|")).toBe("1");
  client.disconnect();
  await redis.dispose();
});
