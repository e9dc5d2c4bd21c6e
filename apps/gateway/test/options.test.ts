/** Settings that change answers: errors in place of fallbacks, refusal of unknown ids, other key headers, body limit. */
import { ERROR_CATALOGUE } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  eventually,
  filled,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  TEST_API_KEY,
  unknownId,
} from "@adrelay/testkit";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let caller: RelayCaller;

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  const env = {
    INJECTION_FALLBACK: "error",
    INJECTION_TIMEOUT_MS: "5000",
    QUOTA_INJECTIONS_IN_FLIGHT: "2",
    UNKNOWN_ACK: "reject",
    API_KEY_HEADERS: "X-Service-API-Key, X-Other-Key",
    API_KEYS: `first-key-of-two,${TEST_API_KEY}`,
    BODY_LIMIT_BYTES: "1000",
    KEEP_ALIVE_TIMEOUT_MS: "620000",
    ADMIN_TOKEN: "",
  };
  stack = await startRelayStack({ redis, providerUrl: provider.url, env });
  caller = relayCaller(stack.gatewayUrl);
});
afterAll(async () => {
  await stack.stop();
  await Promise.all([provider.close(), redis.dispose()]);
});
beforeEach(() => provider.onStart(() => filled()));

test.each([
  [{ kind: "hang" }, 504, "provider_timeout", "timeout"],
  [{ kind: "answer", status: 500 }, 502, "provider_unavailable", "provider_error"],
  [{ kind: "reset" }, 502, "provider_unavailable", "connection_lost"],
] as const)(
  "with errors for fallbacks a provider that does %j gives a %d",
  async (behaviour, status, code, reason) => {
    provider.onStart(() => behaviour);
    const limit = { headers: { "X-Adrelay-Timeout-Ms": behaviour.kind === "hang" ? "300" : "5000" } };
    const answer = await caller.inject(limit);
    expect(answer.body).toMatchObject({ status, code });
    expect(answer.headers.get("X-Adrelay-Fallback")).toBe(reason);
    // A second injection may buy a second ad.
    expect(ERROR_CATALOGUE[code].retryable).toBe("no");
  },
);

test("with errors for fallbacks an injection over a quota gets 429 at once", async () => {
  provider.onStart(() => ({ kind: "hang" }));
  const before = provider.posts.length;
  const slow = { headers: { "X-Adrelay-Timeout-Ms": "3000" } };
  const held = [caller.inject(slow), caller.inject(slow)];
  await eventually(() => expect(provider.posts).toHaveLength(before + 2));
  const refused = await caller.inject(slow);
  expect(refused.body).toMatchObject({
    status: 429,
    code: "rate_limited",
    quota: "injections_in_flight",
    limit: 2,
    used: 2,
  });
  expect(refused.headers.get("X-Adrelay-Fallback")).toBe("overloaded");
  expect(refused.headers.get("X-Adrelay-Fallback-Detail")).toBe("injections_in_flight");
  expect(refused.headers.get("Retry-After")).toBe("1");
  expect((await Promise.all(held)).map(({ status }) => status)).toEqual([504, 504]);
});

test("an unknown id is refused without asking the provider", async () => {
  const id = unknownId();
  expect((await caller.acknowledge(id, "text")).body).toMatchObject({
    status: 404,
    code: "unknown_ad_response",
  });
  expect(provider.acknowledgmentsOf(id)).toHaveLength(0);
});

test.each([
  [{ "X-Other-Key": "first-key-of-two", "X-Service-API-Key": null }, 200],
  [{ "X-Other-Key": "first-key-of-two", "X-Service-API-Key": "" }, 200],
  [{ "X-Other-Key": "first-key-of-two", "X-Service-API-Key": "wrong" }, 401],
  [{ "X-Other-Key": "wrong", "X-Service-API-Key": null }, 401],
] as const)("with the keys %j the first header that has a key counts", async (headers, status) => {
  expect((await caller.inject({ headers })).status).toBe(status);
});

test("the body limit is that of the setting", async () => {
  expect((await caller.acknowledge(unknownId(), "x".repeat(1000))).status).toBe(413);
});

test("an idle connection is kept as long as the setting says", async () => {
  expect((await caller.inject()).headers.get("Keep-Alive")).toBe("timeout=620");
});

test("without a token there is no admin API", async () => {
  const answer = await fetch(`${stack.gatewayOpsUrl}/admin/v1/acknowledgments/${unknownId()}/replay`, {
    method: "POST",
  });
  expect(answer.status).toBe(404);
});

test("the ops listener reports readiness by dependency", async () => {
  const ready = await fetch(`${stack.gatewayOpsUrl}/readyz`);
  expect(await ready.json()).toMatchObject({ status: "ready", checks: { redis: "ok" } });
  const worker = await fetch(`${stack.workerOpsUrl}/readyz`);
  expect(await worker.json()).toMatchObject({ status: "ready", checks: { redis: "ok", consuming: "ok" } });
});
