import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { AppStartError, startApp } from "@adrelay/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { callerOf, KEY, PROMPTS, startAdServer } from "./ad-server.ts";

let redis: TestRedis;
beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis.dispose());

/** Starts a process that must fail to start. */
async function failedStart(env: Record<string, string>): Promise<AppStartError> {
  const outcome = await startApp("ad-server", env).catch((error: unknown) => error);
  if (outcome instanceof AppStartError) {
    return outcome;
  }
  throw new TypeError("the ad server started, but it should have failed");
}

test("all faulty settings are reported without values, and the exit code is 2", async () => {
  const { exit, stderr } = await failedStart({
    AD_SERVER_PORT: "secret-port",
    REDIS_URL: "secret-url",
    LOG_LEVEL: "secret-level",
    CATALOG_FILE: "/nowhere.yaml",
    AD_SERVER_FAULTS: "start:explode; x:503",
  });
  expect(exit).toBe(2);
  for (const name of ["AD_SERVER_PORT", "AD_SERVER_API_KEYS", "REDIS_URL", "LOG_LEVEL", "CATALOG_FILE"]) {
    expect(stderr).toContain(name);
  }
  expect(stderr).toContain('rule "start:explode"');
  expect(stderr).toContain('rule "x:503"');
  expect(stderr).not.toContain("secret-");
});

test.each(["", " , "])("AD_SERVER_API_KEYS of %j is refused", async (keys) => {
  const { exit, stderr } = await failedStart({ AD_SERVER_API_KEYS: keys });
  expect(exit).toBe(2);
  expect(stderr).toContain("AD_SERVER_API_KEYS");
});

test("after SIGTERM the exit code is 0, and no prompt, key or address is in the logs", async () => {
  const server = await startAdServer();
  const { product } = await callerOf(server).served();
  await callerOf(server).start(PROMPTS.rejected);
  expect(await server.app().stop()).toBe(0);
  const logs = JSON.stringify(server.app().logs);
  for (const secret of [PROMPTS.ok, PROMPTS.rejected, "203.0.113.7", KEY, product]) {
    expect(logs).not.toContain(secret);
  }
  await server.dispose();
});

test("after SIGTERM the exit code is 0 even if callers hang on an injected fault", async () => {
  const server = await startAdServer({ AD_SERVER_FAULTS: "any:hang", SHUTDOWN_TIMEOUT_MS: "20000" });
  const hanging = callerOf(server)
    .start(PROMPTS.ok)
    .catch(() => "cut");
  await fetch(`${server.opsUrl()}/healthz`);
  const startedAtMs = performance.now();
  expect(await server.app().stop()).toBe(0);
  expect(await hanging).toBe("cut");
  expect(performance.now() - startedAtMs).toBeLessThan(5000);
  await server.dispose();
});

test("a Redis without append-only file is refused with a reason", async () => {
  const forgetful = await startTestRedis(["--appendonly", "no"]);
  const { exit, stderr } = await failedStart({ AD_SERVER_API_KEYS: KEY, REDIS_URL: forgetful.url });
  expect(exit).toBe(1);
  expect(stderr).toContain("append-only");
  await forgetful.dispose();
});

test("a port in use is reported, and the exit code is 1", async () => {
  const env = { AD_SERVER_API_KEYS: KEY, REDIS_URL: redis.url };
  const first = await startApp("ad-server", { ...env, AD_SERVER_PORT: "0" });
  const { exit, stderr } = await failedStart({ ...env, AD_SERVER_PORT: String(first.listening["port"]) });
  expect(exit).toBe(1);
  expect(stderr).toContain("the port is in use");
  expect(await first.stop()).toBe(0);
});
