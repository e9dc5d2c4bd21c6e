/** The provider's client behind a real proxy. The provider's name is known to the proxy only. */
import type { LookupFunction } from "node:net";
import { adAckIdSchema } from "@adrelay/contract";
import { type ScriptedProvider, startScriptedProvider } from "@adrelay/testkit";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { ProviderClient, proxiesOf } from "../src/index.ts";
import { type ProxyOptions, startProxy } from "./proxy-server.ts";
import { startRawServer } from "./raw-server.ts";
import { filesOf, serverPair, startTlsProvider, tlsOf } from "./tls-fixtures.ts";

const CREDENTIALS = `Basic ${Buffer.from("us er:p@ss").toString("base64")}`;

let provider: ScriptedProvider;

beforeEach(async () => {
  provider = await startScriptedProvider();
});
afterEach(() => provider.close());

interface Call {
  readonly settings: Parameters<typeof proxiesOf>[0];
  readonly url: string;
  readonly timeoutMs?: number;
  readonly lookup?: LookupFunction;
}

async function acknowledge({ settings, url, timeoutMs = 5000, lookup }: Call) {
  const client = new ProviderClient(proxiesOf(settings), lookup);
  onTestFinished(() => client.stop());
  return client.acknowledge({
    account: { url, apiKey: "k", apiKeyHeader: "X-Key", tls: tlsOf(filesOf()) },
    body: "{}",
    requestId: "r",
    adAckId: adAckIdSchema.parse("0b0f7a52-5c1c-8a0b-9a55-2f5a5f7b8f10"),
    timeoutMs,
  });
}

/** Both kinds of provider: its URL by a name that only the proxy knows, and the setting for its proxy. */
async function startBoth() {
  const tlsPort = await startTlsProvider(serverPair("provider"));
  return [
    { setting: "HTTP_PROXY", url: `http://provider.test:${provider.port}/ads` },
    { setting: "HTTPS_PROXY", url: `https://provider.test:${tlsPort}/ads` },
  ] as const;
}

test.each([
  ["without a password", "", {}],
  ["with user and password", "us%20er:p%40ss@", { authorization: CREDENTIALS }],
] as const satisfies readonly (readonly [string, string, ProxyOptions])[])(
  "calls go through a proxy %s, forwarded or tunnelled",
  async (_name, user, options) => {
    const proxy = await startProxy(options);
    for (const { setting, url } of await startBoth()) {
      const reply = await acknowledge({
        settings: { [setting]: `http://${user}127.0.0.1:${proxy.port}` },
        url,
      });
      expect(reply).toMatchObject({ kind: "answered", status: 200 });
    }
    expect(proxy.seen).toEqual([
      `POST http://provider.test:${provider.port}/ads/api/ad-injection/acknowledge/`,
      expect.stringMatching(/^CONNECT provider\.test:\d+$/),
    ]);
    expect(provider.posts[0]?.headers).toMatchObject({
      host: `provider.test:${provider.port}`,
      "x-key": "k",
    });
    expect(provider.posts[0]?.headers).not.toHaveProperty("proxy-authorization");
  },
);

test("a proxy that refuses our password is named as the fault", async () => {
  const proxy = await startProxy({ authorization: CREDENTIALS });
  for (const { setting, url } of await startBoth()) {
    const settings = { [setting]: `http://user:wrong@127.0.0.1:${proxy.port}` };
    expect(await acknowledge({ settings, url })).toMatchObject({ code: "proxy_failed", cause: "http_407" });
  }
  expect(provider.posts).toEqual([]);
});

test("a proxy that isn't there, or has no address, is named as the fault", async () => {
  for (const { setting, url } of await startBoth()) {
    expect(await acknowledge({ settings: { [setting]: "http://127.0.0.1:1" }, url })).toEqual({
      kind: "failed",
      stage: "before_send",
      code: "proxy_failed",
      cause: "ECONNREFUSED",
    });
    expect(await acknowledge({ settings: { [setting]: "http://no-proxy.invalid:1" }, url })).toMatchObject({
      stage: "before_send",
      code: "proxy_failed",
      cause: expect.stringMatching(/^(ENOTFOUND|EAI_AGAIN)$/),
    });
  }
});

test("a proxy that opens no tunnel is named with its status", async () => {
  const proxy = await startProxy({ connect: 503 });
  const settings = { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` };
  expect(await acknowledge({ settings, url: "https://provider.test" })).toEqual({
    kind: "failed",
    stage: "before_send",
    code: "proxy_failed",
    cause: "http_503",
  });
  expect(proxy.seen).toEqual(["CONNECT provider.test:443"]);
});

test("a proxy that never opens a tunnel is bounded by the call's time limit", async () => {
  const proxy = await startProxy({ connect: "silent" });
  const settings = { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` };
  const reply = await acknowledge({ settings, url: "https://provider.test", timeoutMs: 200 });
  expect(reply).toMatchObject({ kind: "failed", stage: "before_send", code: "timeout" });
});

test("a proxy that hangs up on CONNECT fails the call at once", async () => {
  const port = await startRawServer((socket) => socket.once("data", () => socket.destroy()));
  const settings = { HTTPS_PROXY: `http://127.0.0.1:${port}` };
  const reply = await acknowledge({ settings, url: "https://provider.test" });
  expect(reply).toMatchObject({ kind: "failed", stage: "before_send", code: "proxy_failed" });
});

test("an address isn't given up because this process stood still while it connected", async () => {
  const proxy = await startProxy();
  const lookup: LookupFunction = (_host, _options, callback) => {
    // Nothing listens on the second one.
    callback(null, [
      { address: "127.0.0.1", family: 4 },
      { address: "127.0.0.2", family: 4 },
    ]);
    // Comes after Node has begun to connect, and before it can see that it is connected.
    process.nextTick(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300));
  };
  const [forwarded, tunnelled] = await startBoth();
  const calls = [
    { settings: {}, url: `http://two.test:${provider.port}` },
    { settings: { HTTP_PROXY: `http://two.test:${proxy.port}` }, url: forwarded.url },
    { settings: { HTTPS_PROXY: `http://two.test:${proxy.port}` }, url: tunnelled.url },
  ];
  for (const call of calls) {
    expect(await acknowledge({ ...call, lookup })).toMatchObject({ kind: "answered" });
  }
});

test("the provider's certificate is checked through a tunnel", async () => {
  const proxy = await startProxy();
  const port = await startTlsProvider(serverPair("self-signed"));
  const settings = { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` };
  expect(await acknowledge({ settings, url: `https://provider.test:${port}` })).toEqual({
    kind: "failed",
    stage: "before_send",
    code: "certificate_invalid",
    cause: "DEPTH_ZERO_SELF_SIGNED_CERT",
  });
});

test("a host of NO_PROXY is called directly, and so is one without a proxy for its scheme", async () => {
  const proxy = await startProxy();
  const url = `http://127.0.0.1:${provider.port}`;
  const address = `http://127.0.0.1:${proxy.port}`;
  await acknowledge({ settings: { HTTP_PROXY: address, NO_PROXY: ["127.0.0.0/8"] }, url });
  await acknowledge({ settings: { HTTPS_PROXY: address }, url });
  expect(provider.posts).toHaveLength(2);
  expect(proxy.seen).toEqual([]);
});

test("calls through a proxy use its connections again", async () => {
  const proxy = await startProxy();
  const client = new ProviderClient(proxiesOf({ HTTP_PROXY: `http://127.0.0.1:${proxy.port}` }));
  onTestFinished(() => client.stop());
  const account = { url: provider.url, apiKey: "k", apiKeyHeader: "X-Key" };
  for (let call = 0; call < 20; call += 1) {
    const { reply } = await client.startInjection({ account, body: "{}", requestId: "r", timeoutMs: 5000 })
      .reply;
    expect(reply).toMatchObject({ kind: "answered", status: 200 });
  }
  expect(proxy.seen).toHaveLength(20);
});

test("the proxy of an account is shown without its password", () => {
  const client = new ProviderClient(
    proxiesOf({ HTTP_PROXY: "http://user:secret@proxy.test:3128", NO_PROXY: ["b.test"] }),
  );
  onTestFinished(() => client.stop());
  const proxyOf = (url: string) => client.proxyOf({ url, apiKey: "k", apiKeyHeader: "X-Key" });
  expect(["http://a.test", "http://b.test", "https://a.test"].map(proxyOf)).toEqual([
    "http://proxy.test:3128",
    undefined,
    undefined,
  ]);
});
