/** The doctor's checks of proxies and models' servers, on a real gateway and proxies that are real processes. */
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { fileURLToPath } from "node:url";
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
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

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

async function examine(opsUrl = stack.gatewayOpsUrl): Promise<Map<string, DoctorCheck>> {
  const response = await fetch(`${opsUrl}/admin/v1/doctor`, {
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

const common = () => ({
  REDIS_URL: redis.url,
  PROVIDER_URL: provider.url,
  PROVIDER_API_KEY: TEST_PROVIDER_KEY,
  API_KEYS: TEST_API_KEY,
});
const startProxy = () => startApp("proxy", { ...common(), PROXY_PORT: "0", PROXY_OPS_PORT: "0" });

test("with a proxy any answer of a model's server is enough, and no answer is a warning", async () => {
  const proxy = await startProxy();
  const checks = await eventually(async () => {
    const found = await examine();
    expect(found.get("proxies")?.detail).toBe("1 seen within a minute, 0 turns open");
    return found;
  });
  await proxy.stop();
  expect(checks.get(`model:${new URL(modelUrl).host}`)).toMatchObject({
    status: "ok",
    detail: `${modelUrl}/v1/models for default: answers (401, as expected without a key)`,
  });
  expect(checks.get(`model:${new URL(deadUrl).host}`)).toMatchObject({
    status: "warn",
    detail: expect.stringContaining("no answer for this gateway (ECONNREFUSED)"),
  });
  expect(calls[0]).toEqual({ url: "/v1/models", keys: [undefined, undefined] });
});

const pemOf = (name: string) =>
  fileURLToPath(new URL(`../../../packages/provider/testdata/tls/${name}.pem`, import.meta.url));

/** What a gateway with this setting says of a model's server whose certificate is of the test's own authority. */
async function checkOfTlsModel(caFile: string): Promise<DoctorCheck | undefined> {
  const pair = { cert: readFileSync(pemOf("provider")), key: readFileSync(pemOf("provider-key")) };
  const server = createTlsServer(pair, (_, response) => response.end("{}"));
  const port = await freeLanePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const url = `https://127.0.0.1:${port}`;
  const proxy = await startProxy();
  const gateway = await startApp("gateway", {
    ...common(),
    ADMIN_TOKEN: TEST_ADMIN_TOKEN,
    GATEWAY_PORT: "0",
    GATEWAY_OPS_PORT: "0",
    OPENAI_BASE_URL: `${url}/v1`,
    ANTHROPIC_BASE_URL: url,
    MODEL_CA_FILE: caFile,
  });
  onTestFinished(async () => {
    await Promise.all([gateway.stop(), proxy.stop()]);
    server.close();
  });
  const opsUrl = `http://127.0.0.1:${gateway.listening["ops_port"]}`;
  return eventually(async () => {
    const check = (await examine(opsUrl)).get(`model:127.0.0.1:${port}`);
    expect(check).toBeDefined();
    return check;
  });
}

test("a model's server of an own authority is asked with MODEL_CA_FILE", async () => {
  expect(await checkOfTlsModel(pemOf("ca"))).toMatchObject({
    status: "ok",
    detail: expect.stringContaining("answers (200)"),
  });
});

test("a gateway without the proxies' certificates says that it can't judge", async () => {
  expect(await checkOfTlsModel("/nowhere/ca.pem")).toMatchObject({
    status: "warn",
    detail: expect.stringMatching(/not asked, because this gateway lacks .*MODEL_CA_FILE: .*ENOENT/),
  });
});
