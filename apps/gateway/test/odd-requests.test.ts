/** What edges and callers send although it isn't quite right: odd paths. */
import { request as httpRequest } from "node:http";
import { ACKNOWLEDGE_PATH, ACKNOWLEDGMENTS_PATH, INJECTION_PATH } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  filled,
  type RelayStack,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  TEST_API_KEY,
  TEST_INJECTION,
  unknownId,
} from "@adrelay/testkit";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  stack = await startRelayStack({ redis, providerUrl: provider.url });
});
afterAll(async () => {
  await stack.stop();
  await Promise.all([provider.close(), redis.dispose()]);
});
beforeEach(() => provider.onStart(() => filled()));

/** Sends a request with exactly this target. `fetch` would tidy it. */
function sendTo(target: string, method = "POST") {
  const body = method === "POST" ? JSON.stringify(TEST_INJECTION) : "";
  return new Promise<{ status: number; location: string | undefined; body: Record<string, unknown> }>(
    (resolve, reject) => {
      const { hostname: host, port } = new URL(stack.gatewayUrl);
      const headers = { "X-Service-API-Key": TEST_API_KEY, "Content-Type": "application/json" };
      const request = httpRequest({ host, port, path: target, method, headers }, async (response) => {
        const chunks = await response.toArray();
        const text = Buffer.concat(chunks).toString();
        resolve({
          status: response.statusCode ?? 0,
          location: response.headers.location,
          body: JSON.parse(text),
        });
      });
      request.on("error", reject).end(body);
    },
  );
}

test.each([
  INJECTION_PATH,
  "//api/ad-injection/start/",
  "/api//ad-injection/start",
  "/api/ad-injection/start//",
  "/./api/ad-injection/start/",
  "/api/ad-injection/start/.",
  "///api/././/ad-injection/start///?from=//edge",
  "http://gateway.example/api/ad-injection/start/",
  "https://gateway.example:8443//api/ad-injection/start",
])("POST %s is an injection", async (target) => {
  expect(await sendTo(target)).toMatchObject({ status: 200, location: undefined });
});

test.each([
  "/api%2Fad-injection%2Fstart/",
  "/api/ad-injection%2fstart",
  "/API/Ad-Injection/Start/",
  "/x/../api/ad-injection/start/",
  "/api/ad-injection/%2e/start/",
  "/api\\ad-injection\\start",
  "/api/ad-injection/start/extra",
  "http://gateway.example",
  "/",
])("POST %s is 404 and says what to call", async (target) => {
  const answer = await sendTo(target);
  expect(answer).toMatchObject({ status: 404, location: undefined, body: { code: "not_found" } });
  for (const path of [INJECTION_PATH, ACKNOWLEDGE_PATH, ACKNOWLEDGMENTS_PATH]) {
    expect(answer.body["detail"]).toContain(path);
  }
});

test("an odd path of a lookup is normalized as well", async () => {
  const answer = await sendTo(`//api/ad-injection//acknowledgments/${unknownId()}//`, "GET");
  expect(answer.body).toMatchObject({ status: 404, code: "unknown_ad_response" });
});
