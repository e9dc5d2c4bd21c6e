/** The provider's client against a real socket that behaves badly. */
import { createServer } from "node:net";
import { adAckIdSchema } from "@adrelay/contract";
import { type Behaviour, eventually, type ScriptedProvider, startScriptedProvider } from "@adrelay/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ProviderClient } from "../src/index.ts";

let provider: ScriptedProvider;
let client: ProviderClient;

beforeEach(async () => {
  provider = await startScriptedProvider();
  client = new ProviderClient();
});
afterEach(async () => {
  await client.close();
  await provider.close();
});

function acknowledge(url = provider.url, timeoutMs = 300) {
  return client.acknowledge({
    account: { url, apiKey: "k", apiKeyHeader: "X-Key" },
    body: "{}",
    requestId: "r",
    adAckId: adAckIdSchema.parse("0b0f7a52-5c1c-8a0b-9a55-2f5a5f7b8f10"),
    timeoutMs,
  });
}

test.each([
  [{ kind: "hang" }, "timeout"],
  [{ kind: "drip" }, "timeout"],
  [{ kind: "reset" }, "connection_lost"],
  [{ kind: "raw", status: 200, bytes: "x".repeat(300_000) }, "answer_too_large"],
] as const satisfies readonly (readonly [Behaviour, string])[])(
  "a provider that does %j may have seen the request, and the call failed as %s",
  async (behaviour, code) => {
    provider.onAcknowledge(() => behaviour);
    expect(await acknowledge()).toEqual({ kind: "failed", stage: "after_send", code });
  },
);

test("a provider that is not there can't have seen the request", async () => {
  await provider.close();
  expect(await acknowledge()).toEqual({ kind: "failed", stage: "before_send", code: "unreachable" });
});

test("a host that doesn't exist can't have seen the request", async () => {
  expect(await acknowledge("http://no-such-host.invalid", 5000)).toMatchObject({ code: "unreachable" });
});

test("a redirect is an answer and is not followed", async () => {
  provider.onAcknowledge(() => ({
    kind: "answer",
    status: 307,
    headers: { location: `${provider.url}/elsewhere` },
  }));
  expect(await acknowledge()).toMatchObject({ kind: "answered", status: 307 });
  expect(provider.posts).toHaveLength(1);
});

test("a provider below a path gets its calls there, with key and idempotency key", async () => {
  await acknowledge(`${provider.url}/ads/v1/`);
  expect(provider.posts[0]?.headers).toMatchObject({
    "x-key": "k",
    "x-request-id": "r",
    "idempotency-key": "0b0f7a52-5c1c-8a0b-9a55-2f5a5f7b8f10",
  });
  expect(provider.posts[0]?.path).toBe("/ads/v1/api/ad-injection/acknowledge/");
});

test("Retry-After is passed on as it came", async () => {
  provider.onAcknowledge(() => ({ kind: "answer", status: 429, headers: { "retry-after": "7" } }));
  expect(await acknowledge()).toMatchObject({ status: 429, retryAfter: "7" });
});

test("a request that is called off before its connection stands never goes out", async () => {
  // A server that is silent while the client waits for its TLS handshake.
  const silent = createServer();
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const call = client.startInjection({
    account: {
      url: `https://127.0.0.1:${Object(silent.address()).port}`,
      apiKey: "k",
      apiKeyHeader: "X-Key",
    },
    body: "{}",
    requestId: "r",
    timeoutMs: 1000,
  });
  setTimeout(() => call.giveUp(), 50);
  expect((await call.reply).reply).toMatchObject({ kind: "failed", stage: "before_send" });
  expect(call.wasSent()).toBe(false);
  silent.close();
});

test("an answer that is given up in its middle is a lost connection", async () => {
  provider.onStart(() => ({ kind: "drip" }));
  const call = client.startInjection({
    account: { url: provider.url, apiKey: "k", apiKeyHeader: "X-Key" },
    body: "{}",
    requestId: "r",
    timeoutMs: 5000,
  });
  await eventually(() => expect(call.wasSent()).toBe(true), 1000);
  setTimeout(() => call.giveUp(), 100);
  const { reply } = await call.reply;
  expect(reply).toEqual({ kind: "failed", stage: "after_send", code: "connection_lost" });
});

test("every one of many calls goes out at once, also while the provider hangs", async () => {
  provider.onAcknowledge(() => ({ kind: "hang" }));
  const calls = Array.from({ length: 300 }, () => acknowledge(provider.url, 1500));
  await eventually(() => expect(provider.posts).toHaveLength(300), 1500);
  expect(
    (await Promise.all(calls)).every((reply) => reply.kind === "failed" && reply.code === "timeout"),
  ).toBe(true);
});
