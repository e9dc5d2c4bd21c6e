/** The provider's client against real servers that behave badly. */
import { createServer, type LookupFunction } from "node:net";
import { adAckIdSchema } from "@adrelay/contract";
import {
  acknowledged,
  type Behaviour,
  eventually,
  type ScriptedProvider,
  startScriptedProvider,
} from "@adrelay/testkit";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { ProviderClient } from "../src/index.ts";
import { startRawServer } from "./raw-server.ts";

let provider: ScriptedProvider;
let client: ProviderClient;

beforeEach(async () => {
  provider = await startScriptedProvider();
  client = new ProviderClient();
});
afterEach(async () => {
  await client.stop();
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
    const timeoutMs = code === "timeout" ? 300 : 5000;
    expect(await acknowledge(provider.url, timeoutMs)).toMatchObject({
      kind: "failed",
      stage: "after_send",
      code,
    });
  },
);

test("a provider that is not there can't have seen the request", async () => {
  await provider.close();
  expect(await acknowledge()).toEqual({
    kind: "failed",
    stage: "before_send",
    code: "unreachable",
    cause: "ECONNREFUSED",
  });
});

test("a host that doesn't exist can't have seen the request", async () => {
  const reply = await acknowledge("http://no-such-host.invalid", 5000);
  expect(reply).toMatchObject({ kind: "failed", stage: "before_send", code: "dns_failed" });
  expect(reply.kind === "failed" && reply.cause).toMatch(/^(ENOTFOUND|EAI_AGAIN)$/);
});

test("a host whose look-up hangs is looked up once, and holds up no other host", async () => {
  const hosts: string[] = [];
  const lookup: LookupFunction = (host, _options, callback) => {
    hosts.push(host);
    if (host !== "hangs.test") {
      callback(null, [{ address: "127.0.0.1", family: 4 }]);
    }
  };
  const own = new ProviderClient(undefined, lookup);
  onTestFinished(() => own.stop());
  const call = (host: string, timeoutMs: number) =>
    own.startInjection({
      account: { url: `http://${host}:${provider.port}`, apiKey: "k", apiKeyHeader: "X-Key" },
      body: "{}",
      requestId: "r",
      timeoutMs,
    });
  const held = Array.from({ length: 100 }, () => call("hangs.test", 200));
  expect((await call("other.test", 5000).reply).reply).toMatchObject({ kind: "answered" });
  const ended = await Promise.all(held.map(({ reply }) => reply));
  expect(new Set(ended.map(({ reply }) => reply.kind === "failed" && reply.code))).toEqual(
    new Set(["timeout"]),
  );
  expect(hosts).toEqual(["hangs.test", "other.test"]);
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

test("a provider's URL may have a path, and its calls carry the key and the idempotency key", async () => {
  await acknowledge(`${provider.url}/ads/v1/`);
  expect(provider.posts[0]?.headers).toMatchObject({
    "x-key": "k",
    "x-request-id": "r",
    "idempotency-key": "0b0f7a52-5c1c-8a0b-9a55-2f5a5f7b8f10",
  });
  expect(provider.posts[0]?.path).toBe("/ads/v1/api/ad-injection/acknowledge/");
});

test("Retry-After is passed on unchanged", async () => {
  provider.onAcknowledge(() => ({ kind: "answer", status: 429, headers: { "retry-after": "7" } }));
  expect(await acknowledge()).toMatchObject({ status: 429, retryAfter: "7" });
});

test("a request that is given up before its connection is made is never sent", async () => {
  // A server that stays silent while the client waits for the TLS handshake.
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

test("a call that is given up in the middle of its answer counts as a lost connection", async () => {
  provider.onStart(() => ({ kind: "drip" }));
  const call = client.startInjection({
    account: { url: provider.url, apiKey: "k", apiKeyHeader: "X-Key" },
    body: "{}",
    requestId: "r",
    timeoutMs: 20_000,
  });
  await eventually(() => expect(call.wasSent()).toBe(true));
  setTimeout(() => call.giveUp(), 100);
  const { reply } = await call.reply;
  expect(reply).toMatchObject({ kind: "failed", stage: "after_send", code: "connection_lost" });
});

test("many calls are sent without waiting for each other, even while the provider hangs", async () => {
  const allSent = Promise.withResolvers<void>();
  provider.onAcknowledge(() => ({ kind: "held", until: allSent.promise, answer: acknowledged() }));
  const calls = Array.from({ length: 300 }, () => acknowledge(provider.url, 20_000));
  await eventually(() => expect(provider.posts).toHaveLength(300));
  allSent.resolve();
  expect(new Set((await Promise.all(calls)).map(({ kind }) => kind))).toEqual(new Set(["answered"]));
});

const ANSWER = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

test("a call that times out before its connection is made was not sent", async () => {
  const port = await startRawServer(() => {});
  const reply = await acknowledge(`https://127.0.0.1:${port}`, 100);
  expect(reply).toEqual({ kind: "failed", stage: "before_send", code: "timeout" });
});

test("a call whose TLS handshake is cut off was not sent", async () => {
  const port = await startRawServer((socket) => socket.destroy());
  const reply = await acknowledge(`https://127.0.0.1:${port}`, 5000);
  expect(reply).toMatchObject({ kind: "failed", stage: "before_send", code: "connection_lost" });
});

test.each([
  ["is not HTTP", "220 mail ready\r\n"],
  ["is cut off before its announced length", ANSWER.replace("2\r\n\r\n", "100\r\n\r\n")],
  ["ends after an early hint", "HTTP/1.1 103 Early Hints\r\n\r\n"],
])("a call whose answer %s may have been seen", async (_name, bytes) => {
  const port = await startRawServer((socket) => socket.once("data", () => socket.end(bytes)));
  const reply = await acknowledge(`http://127.0.0.1:${port}`, 5000);
  expect(reply).toMatchObject({ kind: "failed", stage: "after_send", code: "connection_lost" });
});

test("a request that is cut off on a reused connection may have been seen, and is not sent again", async () => {
  let requests = 0;
  const port = await startRawServer((socket) => {
    socket.on("data", () => {
      requests += 1;
      if (requests === 1) {
        socket.write(ANSWER);
      } else {
        socket.destroy();
      }
    });
  });
  expect(await acknowledge(`http://127.0.0.1:${port}`, 5000)).toMatchObject({ kind: "answered" });
  const reply = await acknowledge(`http://127.0.0.1:${port}`, 5000);
  expect(reply).toMatchObject({ kind: "failed", stage: "after_send", code: "connection_lost" });
  expect(requests).toBe(2);
});

test("a close ends the calls that were sent, and later calls are not sent", async () => {
  provider.onAcknowledge(() => ({ kind: "hang" }));
  const running = acknowledge(provider.url, 20_000);
  await eventually(() => expect(provider.posts).toHaveLength(1));
  await client.stop();
  expect(await running).toMatchObject({ kind: "failed", stage: "after_send", code: "connection_lost" });
  expect(await acknowledge()).toMatchObject({
    kind: "failed",
    stage: "before_send",
    code: "connection_lost",
  });
  expect(provider.posts).toHaveLength(1);
});

test("a request with a header that HTTP doesn't allow is not sent", async () => {
  const call = client.startInjection({
    account: { url: provider.url, apiKey: "k", apiKeyHeader: "X-Key" },
    body: "{}",
    requestId: "r",
    traceHeaders: { traceparent: "a\nb" },
    timeoutMs: 1000,
  });
  expect((await call.reply).reply).toMatchObject({ kind: "failed", stage: "before_send" });
  expect(call.wasSent()).toBe(false);
  expect(provider.posts).toEqual([]);
});
