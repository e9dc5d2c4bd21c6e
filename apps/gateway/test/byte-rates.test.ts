/** How many bytes of bodies a publisher may send: what is announced, what isn't, and what is compressed. */
import { request as httpRequest } from "node:http";
import { gzipSync } from "node:zlib";
import { ACKNOWLEDGE_PATH, API_KEY_HEADER } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  callerKeyOf,
  fetchMetrics,
  filled,
  type PublishersFile,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  unknownId,
  writePublishersFile,
} from "@adrelay/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";

const BURST_BYTES = 2000;
/** A byte a second: a debt of the tests is never paid back. */
const SLOW = `quotas: { bytes_per_second: 1, bytes_burst: ${BURST_BYTES} }`;
const ASYNC = { headers: { Prefer: "respond-async" } };
const LONG = "x".repeat(2 * BURST_BYTES);

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let file: PublishersFile;

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  provider.onStart(() => filled());
  const publishers = ["announced", "chunked", "compressed", "injecting"];
  file = writePublishersFile([
    ...publishers.map((id) => ({ id, providerUrl: provider.url, keyEnv: "PROVIDER_KEY", more: SLOW })),
    { id: "other", providerUrl: provider.url, keyEnv: "PROVIDER_KEY" },
  ]);
  const env = { API_KEYS: "", PUBLISHERS_FILE: file.path, PROVIDER_KEY: "key" };
  stack = await startRelayStack({ redis, providerUrl: provider.url, env });
});
afterAll(async () => {
  await stack.stop();
  await Promise.all([provider.close(), redis.dispose()]);
  file.remove();
});

const callerOf = (publisher: string) => relayCaller(stack.gatewayUrl, callerKeyOf(publisher));
const bodyOf = (text: string) => JSON.stringify({ ad_response_id: unknownId(), llm_response: text });
const OVER = { code: "rate_limited", quota: "bytes_per_second", limit: 1 };

test("a body longer than the burst is accepted once, and refused until the rate made up for it", async () => {
  const caller = callerOf("announced");
  const id = unknownId();
  expect((await caller.acknowledgeUntilAccepted(id, LONG, ASYNC)).status).toBe(201);
  const refused = await caller.acknowledge(unknownId(), "short", ASYNC);
  expect(refused.body).toMatchObject({ status: 429, ...OVER });
  expect(refused.body["used"]).toBeUndefined();
  // It owes more than 2000 bytes, and gets one a second.
  expect(Number(refused.headers.get("Retry-After"))).toBeGreaterThan(BURST_BYTES);
  expect((await caller.lookUp(id)).status).toBe(200);
  expect((await callerOf("other").acknowledgeUntilAccepted(unknownId(), "short", ASYNC)).status).toBe(201);
  const met = { publisher: "announced", quota: "bytes_per_second" };
  const labels = Object.entries(met).map(([name, value]) => `${name}="${value}"`);
  const samples = await fetchMetrics(stack.gatewayOpsUrl);
  expect(samples.get(`adrelay_quota_refused_total{${labels.join(",")}}`)).toBe(1);
});

/** Without Content-Length. */
function acknowledgeInChunks(body: string): Promise<{ status: number | undefined; body: unknown }> {
  return new Promise((resolve, reject) => {
    const headers = { [API_KEY_HEADER]: callerKeyOf("chunked"), "Content-Type": "application/json" };
    const url = `${stack.gatewayUrl}${ACKNOWLEDGE_PATH}`;
    const request = httpRequest(url, { method: "POST", headers: { ...headers, ...ASYNC.headers } });
    request.on("response", async (response) => {
      const text = Buffer.concat(await response.toArray()).toString();
      resolve({ status: response.statusCode, body: JSON.parse(text) });
    });
    request.on("error", reject);
    request.write(body.slice(0, 10));
    request.end(body.slice(10));
  });
}

test("a body that doesn't announce its length is charged when it has been read", async () => {
  expect((await acknowledgeInChunks(bodyOf(LONG))).status).toBe(201);
  expect(await acknowledgeInChunks(bodyOf("short"))).toMatchObject({ status: 429, body: OVER });
});

test("a compressed body is charged with what it becomes", async () => {
  const headers = { ...ASYNC.headers, "Content-Encoding": "gzip" };
  const sent = gzipSync(bodyOf(LONG));
  expect(sent.length).toBeLessThan(BURST_BYTES / 4);
  const send = () => callerOf("compressed").send(ACKNOWLEDGE_PATH, sent, { headers });
  expect((await send()).status).toBe(201);
  expect((await send()).body).toMatchObject({ status: 429, ...OVER });
});

test("an injection over the bytes a second gets its fallback at once", async () => {
  const caller = callerOf("injecting");
  expect((await caller.inject(undefined, { prompt: LONG })).status).toBe(200);
  const before = provider.posts.length;
  const refused = await caller.inject();
  expect(refused.status).toBe(202);
  expect(refused.headers.get("X-Adrelay-Fallback-Detail")).toBe("bytes_per_second");
  expect(provider.posts).toHaveLength(before);
  expect((await caller.acknowledgeUntilAccepted(unknownId(), "short", ASYNC)).status).toBe(201);
});
