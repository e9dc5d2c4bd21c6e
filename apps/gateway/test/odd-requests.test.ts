/** What edges and callers send although it isn't quite right: odd paths, escaped texts. */
import { request as httpRequest } from "node:http";
import { ACKNOWLEDGE_PATH, ACKNOWLEDGMENTS_PATH, INJECTION_PATH } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  filled,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  TEST_ADMIN_TOKEN,
  TEST_API_KEY,
  TEST_INJECTION,
  unknownId,
} from "@adrelay/testkit";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let caller: RelayCaller;

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  stack = await startRelayStack({ redis, providerUrl: provider.url });
  caller = relayCaller(stack.gatewayUrl);
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

/** As Python's `json.dumps` does it. */
const escapeNonAscii = (json: string) =>
  json.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
const acknowledgmentOf = (id: unknown, text: string) =>
  JSON.stringify({ ad_response_id: id, llm_response: text });

const LIMIT_BYTES = 1_048_576;
const FRAME_BYTES = acknowledgmentOf(unknownId(), "").length;
const TEXT_BYTES = LIMIT_BYTES - FRAME_BYTES;

test.each([
  ["Chinese", "\u4e2d".repeat(Math.floor(TEXT_BYTES / 3)), 3],
  ["Arabic", "\u0639".repeat(Math.floor(TEXT_BYTES / 2)), 2],
  ["emoji", "\u{1f600}".repeat(Math.floor(TEXT_BYTES / 4)), 4],
  ["control characters", "\u0001".repeat(TEXT_BYTES), 1],
])("a text of 1 MiB arrives however its %s are escaped, and a longer one is 413", async (_what, text) => {
  const { body } = await caller.inject();
  const id = body["ad_response_id"];
  const escaped = escapeNonAscii(acknowledgmentOf(id, text));
  expect(escaped.length).toBeGreaterThan(LIMIT_BYTES);
  const patient = { headers: { Prefer: "wait=30" } };
  expect((await caller.send(ACKNOWLEDGE_PATH, escaped, patient)).status).toBe(200);
  expect(provider.acknowledgmentsOf(String(id))[0]?.body.toString()).toBe(escaped);
  const over = await caller.send(
    ACKNOWLEDGE_PATH,
    escapeNonAscii(acknowledgmentOf(id, `${text}${text.slice(0, 2)}abc`)),
  );
  expect(over.body).toMatchObject({ status: 413, code: "payload_too_large" });
  expect(over.body["detail"]).toContain(String(LIMIT_BYTES));
});

test("a body that is too long in any form is 413", async () => {
  const long = await caller.send(INJECTION_PATH, "x".repeat(6 * LIMIT_BYTES + 1));
  expect(long.body).toMatchObject({ status: 413, code: "payload_too_large" });
  expect(long.body["detail"]).toContain(`${LIMIT_BYTES} bytes`);
});

test("an operator's body of open brackets is refused as too complex", async () => {
  const answer = await fetch(`${stack.gatewayOpsUrl}/admin/v1/replays`, {
    method: "POST",
    headers: { Authorization: `Bearer ${TEST_ADMIN_TOKEN}`, "Content-Type": "application/json" },
    body: "[".repeat(16_000),
  });
  expect(await answer.json()).toMatchObject({
    code: "invalid_json",
    detail: expect.stringContaining("nested"),
  });
});
