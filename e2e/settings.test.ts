/** With faulty settings or a Redis that isn't durable an app doesn't start. It reports all faults together. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { type AppName, type AppProcess, AppStartError, eventually, startApp } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

async function failure(
  app: AppName,
  env: Record<string, string>,
  nodeArgs: readonly string[] = [],
): Promise<{ exit: number | string; stderr: string }> {
  try {
    await (await startApp(app, env, { nodeArgs })).stop();
  } catch (error) {
    if (error instanceof AppStartError) {
      return error;
    }
  }
  throw new TypeError(`${app} started`);
}

/** Settings with which each app starts on any port. */
const WORKING = {
  API_KEYS: "key-for-this-test",
  PROVIDER_API_KEY: "k",
  AD_SERVER_API_KEYS: "key-for-this-test",
  GATEWAY_PORT: "0",
  GATEWAY_OPS_PORT: "0",
  WORKER_OPS_PORT: "0",
  AD_SERVER_PORT: "0",
} as const;

// Each test has its own processes, so some run at the same time.
describe.concurrent("the settings of a process", () => {
  let redis: TestRedis;
  let notDurable: TestRedis;
  beforeAll(async () => {
    [redis, notDurable] = await Promise.all([startTestRedis(), startTestRedis(["--appendonly", "no"])]);
  });
  afterAll(() => Promise.all([redis.dispose(), notDurable.dispose()]));

  test.each([
    [
      "gateway",
      { GATEWAY_PORT: "hunter2", ACK_WAIT_MS: "hunter2", UNKNOWN_ACK: "hunter2" },
      ["GATEWAY_PORT", "ACK_WAIT_MS", "UNKNOWN_ACK"],
    ],
    ["gateway", {}, ["API_KEYS", "PROVIDER_API_KEY"]],
    [
      "gateway",
      { API_KEYS: "key-for-this-test", PUBLISHERS_FILE: "/no/such", PROVIDER_API_KEY: "hunter2" },
      ["API_KEYS", "PUBLISHERS_FILE"],
    ],
    [
      "gateway",
      {
        GATEWAY_PORT: "99999",
        PROVIDER_API_KEY: "hunter2\nhunter2",
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
      { RETRY_SCHEDULE: "5x", DELIVERY_MAX_AGE: "hunter2", REDIS_URL: "hunter2" },
      ["RETRY_SCHEDULE", "DELIVERY_MAX_AGE", "REDIS_URL"],
    ],
    [
      "ad-server",
      { AD_SERVER_PORT: "99999", AD_SERVER_FAULTS: "nonsense" },
      ["AD_SERVER_PORT", "AD_SERVER_FAULTS", "AD_SERVER_API_KEYS"],
    ],
    ["worker", { REDIS_URL: "redis://:100%hunter2@127.0.0.1:6379" }, ["REDIS_URL"]],
    ["gateway", { REDIS_URL: "redis://u:1#hunter2@127.0.0.1:6379" }, ["REDIS_URL"]],
    ["ad-server", { REDIS_URL: "redis://u:1/hunter2@127.0.0.1:6379" }, ["REDIS_URL"]],
    ["ad-server", { REDIS_URL: "redis://127.0.0.1:6379/hunter2" }, ["REDIS_URL"]],
    [
      "gateway",
      {
        ADMIN_TOKEN: '"hunter2"',
        API_KEYS: "a,'hunter2'",
        PROVIDER_API_KEY: "`hunter2`",
        PROVIDER_URL: "'http://hunter2.example'",
        GATEWAY_HOST: '"127.0.0.1"',
      },
      ["ADMIN_TOKEN", "API_KEYS", "PROVIDER_API_KEY", "PROVIDER_URL", "GATEWAY_HOST"],
    ],
    [
      "gateway",
      { ADMIN_TOKEN: "hunter2\nhunter2", ADMIN_TOKENS: "a:'hunter2',b:hünter2", API_KEYS: "hünter2" },
      ["ADMIN_TOKEN", "ADMIN_TOKENS", "API_KEYS"],
    ],
    [
      "ad-server",
      { AD_SERVER_API_KEYS: '"hunter2,other"', AD_SERVER_REPORT_KEY: "'hunter2'" },
      ["AD_SERVER_API_KEYS", "AD_SERVER_REPORT_KEY"],
    ],
    [
      "gateway",
      {
        ADMIN_TOKEN: "x",
        ADMIN_TOKENS: "a:15-char-hunter2",
        API_KEYS: "demo-caller-key",
        METRICS_TOKEN: "hunter2",
      },
      [
        "ADMIN_TOKEN:",
        "ADMIN_TOKENS.0: the token must",
        "API_KEYS.0: must not be a key of Adrelay's examples",
        "METRICS_TOKEN:",
      ],
    ],
    [
      "gateway",
      { ADMIN_TOKEN: "demo-admin-token" },
      ["ADMIN_TOKEN: must not be a key of Adrelay's examples"],
    ],
    [
      "ad-server",
      { AD_SERVER_API_KEYS: "demo-provider-key,hunter2", AD_SERVER_REPORT_KEY: "hunter2" },
      [
        "AD_SERVER_API_KEYS.0.0: must not",
        "AD_SERVER_API_KEYS.1.0: must have",
        "AD_SERVER_REPORT_KEY: must have",
      ],
    ],
    ["gateway", { ACK_DEADLINE_MS: "32d", ACK_WAIT_MS: "1w" }, ["ACK_DEADLINE_MS", "ACK_WAIT_MS"]],
    ["gateway", { API_KEY: "hunter2", PROVIDER_APIKEY: "hunter2" }, ["API_KEY:", "PROVIDER_APIKEY:"]],
  ] as const)(
    "%s with %j names each faulty setting, shows no value, exits with 2",
    async (app, env, names) => {
      const { exit, stderr } = await failure(app, env);
      expect(exit).toBe(2);
      for (const name of names) {
        expect(stderr).toContain(name);
      }
      expect(stderr).not.toContain("hunter2");
    },
  );

  test("line breaks and blanks around values are no part of them", async () => {
    const env = {
      REDIS_URL: `${redis.url}\n`,
      API_KEYS: "key-for-this-test\n",
      ADMIN_TOKEN: " token-for-this-test\r\n",
    };
    const gateway = await startApp("gateway", { ...WORKING, ...env, PROVIDER_API_KEY: "k\n" });
    const ask = (port: unknown, path: string, headers: Record<string, string>) =>
      fetch(`http://127.0.0.1:${String(port)}${path}`, { headers }).then(({ status }) => status);
    const { port, ops_port: opsPort } = gateway.listening;
    const stats = await ask(opsPort, "/admin/v1/stats", { Authorization: "Bearer token-for-this-test" });
    const path = "/api/ad-injection/acknowledgments/3f2b8c1e-9d4a-4c6b-8f10-0a1b2c3d4e5f/";
    expect([stats, await ask(port, path, { "X-Service-API-Key": "key-for-this-test" })]).toEqual([200, 404]);
    expect(await gateway.stop()).toBe(0);
  });

  describe.each([
    {
      name: "gateway",
      spans: {
        ACK_DEADLINE_MS: "15m",
        ACK_WAIT_MS: "1s",
        RECORD_RETENTION: "2592000000",
        INJECTION_TIMEOUT_MS: "2s",
        SHUTDOWN_DELAY_MS: "0",
        KEEP_ALIVE_TIMEOUT_MS: "75s",
      },
      misspelt: "ACK_DEADLINE",
      nearest: "ACK_DEADLINE_MS",
    },
    {
      name: "worker",
      spans: {
        RETRY_SCHEDULE: "5000,30s",
        DELIVERY_MAX_AGE: "259200000",
        SWEEP_INTERVAL_MS: "1s",
        DELIVERY_TIMEOUT_MS: "10s",
        BREAKER_PROBE_INTERVAL_MS: "5s",
        SHUTDOWN_TIMEOUT_MS: "25s",
      },
      misspelt: "RETRY_SHEDULE",
      nearest: "RETRY_SCHEDULE",
    },
    {
      name: "ad-server",
      spans: { ACK_WINDOW: "345600000", CATALOG_RELOAD_INTERVAL: "250", PACING_DAYS: "30d" },
      misspelt: "CATALOG_FLIE",
      nearest: "CATALOG_FILE",
    },
  ] as const)("a running $name", ({ name, spans, misspelt, nearest }) => {
    let app: AppProcess;
    beforeAll(async () => {
      const env = { ...WORKING, ...spans, REDIS_URL: redis.url, [misspelt]: "1", GLOBE_KEY: "1" };
      app = await startApp(name, env);
    });
    afterAll(() => app.stop());

    test(`logs that ${misspelt} is no setting, and names the nearest one`, () => {
      const warnings = app.logs.filter(({ event }) => event === "setting_unknown");
      expect(warnings).toEqual([expect.objectContaining({ level: "warn", name: misspelt, nearest })]);
    });

    test(`has taken time spans with and without a unit: ${JSON.stringify(spans)}`, async () => {
      expect(await app.stop()).toBe(0);
    });
  });

  test.each(["gateway", "worker", "ad-server"] as const)(
    "%s refuses a file of node --env-file that docker compose would read differently",
    async (name) => {
      const folder = mkdtempSync(join(tmpdir(), "adrelay-env-"));
      const file = join(folder, "settings.env");
      writeFileSync(file, "LOG_LEVEL=info\nPROVIDER_API_KEY=hunter2#1\n");
      const { exit, stderr } = await failure(name, WORKING, [`--env-file=${file}`]);
      expect(exit).toBe(2);
      expect(stderr).toContain("settings.env line 2, PROVIDER_API_KEY");
      expect(stderr).not.toContain("hunter2");
      rmSync(folder, { recursive: true });
    },
  );

  test.each(["gateway", "worker", "ad-server"] as const)(
    "%s refuses a Redis without an append-only file",
    async (app) => {
      const env = {
        REDIS_URL: notDurable.url,
        API_KEYS: "key-for-this-test",
        PROVIDER_API_KEY: "k",
        AD_SERVER_API_KEYS: "key-for-this-test",
      };
      const ports = { GATEWAY_PORT: "0", GATEWAY_OPS_PORT: "0", WORKER_OPS_PORT: "0", AD_SERVER_PORT: "0" };
      const { exit, stderr } = await failure(app, { ...env, ...ports });
      expect(exit).toBe(1);
      expect(stderr).toContain("appendonly yes");
      const warning = await startApp(app, { ...env, ...ports, REDIS_DURABILITY: "warn" });
      expect(warning.logs).toContainEqual(
        expect.objectContaining({ event: "redis_not_durable", level: "warn" }),
      );
      const opsPort = warning.listening["ops_port"];
      if (opsPort !== undefined) {
        const ready = await fetch(`http://127.0.0.1:${String(opsPort)}/readyz`);
        expect(await ready.json()).toMatchObject({
          warnings: { redis_durability: expect.stringContaining("set appendonly yes") },
        });
      }
      expect(await warning.stop()).toBe(0);
    },
  );

  test("a gateway starts before Redis, and accepts acknowledgments once Redis runs", async () => {
    const own = await startTestRedis();
    await own.stop();
    const gateway = await startApp("gateway", {
      REDIS_URL: own.url,
      API_KEYS: "key-for-this-test",
      PROVIDER_API_KEY: "k",
      PROVIDER_URL: "http://127.0.0.1:9",
      GATEWAY_PORT: "0",
      GATEWAY_OPS_PORT: "0",
    });
    const call = (path: string, body: unknown) =>
      fetch(`http://127.0.0.1:${String(gateway.listening["port"])}/api/ad-injection/${path}/`, {
        method: "POST",
        headers: { "X-Service-API-Key": "key-for-this-test", "Content-Type": "application/json" },
        body: JSON.stringify(body),
      });
    const acknowledgment = { ad_response_id: "3f2b8c1e-9d4a-4c6b-8f10-0a1b2c3d4e5f", llm_response: "x" };
    expect((await call("start", { prompt: "x" })).headers.get("X-Adrelay-Fallback")).toBe("unreachable");
    expect((await call("acknowledge", acknowledgment)).status).toBe(503);
    await own.restart();
    await eventually(async () => expect((await call("acknowledge", acknowledgment)).status).toBe(201), 5000);
    expect(await gateway.stop()).toBe(0);
    const client = new Redis(own.url);
    expect(await client.hget("{adrelay:0}:totals", "accepted|default|")).toBe("1");
    client.disconnect();
    await own.dispose();
  });
});
