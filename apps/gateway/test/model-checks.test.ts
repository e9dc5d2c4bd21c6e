/** The doctor's checks of proxies and models' servers, on a real gateway and proxies that are real processes. */
import { createServer, type Server } from "node:http";
import { type DoctorCheck, doctorReportSchema } from "@adrelay/contract";
import { freeLanePort, startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  eventually,
  type RelayStack,
  type ScriptedProvider,
  startApp,
  startRelayStack,
  startScriptedProvider,
  TEST_ADMIN_TOKEN,
  TEST_API_KEY,
  TEST_PROVIDER_KEY,
} from "@adrelay/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let model: Server;
let modelUrl: string;
let deadUrl: string;
const calls: { readonly url: string | undefined; readonly keys: unknown[] }[] = [];

beforeAll(async () => {
  model = createServer(({ url, headers }, response) => {
    calls.push({ url, keys: [headers["authorization"], headers["x-api-key"]] });
    response.writeHead(401).end("{}");
  });
  const port = await freeLanePort();
  await new Promise<void>((resolve) => model.listen(port, "127.0.0.1", resolve));
  modelUrl = `http://127.0.0.1:${port}`;
  deadUrl = `http://127.0.0.1:${await freeLanePort()}`;
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  stack = await startRelayStack({
    redis,
    providerUrl: provider.url,
    env: { OPENAI_BASE_URL: `${modelUrl}/v1/`, ANTHROPIC_BASE_URL: deadUrl },
  });
});
afterAll(async () => {
  model.close();
  await stack.stop();
  await Promise.all([provider.close(), redis.dispose()]);
});

async function examine(): Promise<Map<string, DoctorCheck>> {
  const response = await fetch(`${stack.gatewayOpsUrl}/admin/v1/doctor`, {
    headers: { Authorization: `Bearer ${TEST_ADMIN_TOKEN}` },
  });
  const { checks } = doctorReportSchema.parse(await response.json());
  return new Map(checks.map((check) => [check.name, check]));
}

test("without a proxy no model's server is called", async () => {
  const checks = await examine();
  expect(checks.get("proxies")).toEqual({ name: "proxies", status: "ok", detail: "none runs" });
  expect([...checks.keys()].filter((name) => name.startsWith("model:"))).toEqual([]);
  expect(calls).toEqual([]);
});

test("with a proxy any answer of a model's server is enough, and no answer is a warning", async () => {
  const proxy = await startApp("proxy", {
    REDIS_URL: redis.url,
    PROVIDER_URL: provider.url,
    PROVIDER_API_KEY: TEST_PROVIDER_KEY,
    API_KEYS: TEST_API_KEY,
    PROXY_PORT: "0",
    PROXY_OPS_PORT: "0",
  });
  const checks = await eventually(async () => {
    const found = await examine();
    expect(found.get("proxies")?.detail).toBe("1 seen within a minute, 0 turns open");
    return found;
  });
  await proxy.stop();
  expect(checks.get(`model:${new URL(modelUrl).host}`)).toMatchObject({
    status: "ok",
    detail: `${modelUrl}/v1/models for default: answers (401)`,
  });
  expect(checks.get(`model:${new URL(deadUrl).host}`)).toMatchObject({
    status: "warn",
    detail: expect.stringContaining("no answer for this gateway (ECONNREFUSED)"),
  });
  expect(calls[0]).toEqual({ url: "/v1/models", keys: [undefined, undefined] });
});
