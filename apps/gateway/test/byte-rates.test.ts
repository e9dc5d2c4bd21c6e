/** How many bytes of bodies a publisher may send: what is announced, what isn't, what is compressed, and what fails. */
import { request as httpRequest } from "node:http";
import { gzipSync } from "node:zlib";
import { ACKNOWLEDGE_PATH, API_KEY_HEADER, JSON_ESCAPE_FACTOR_MAX } from "@adrelay/contract";
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
const LIMIT_BYTES = 20_000;
const READ_BYTES_MAX = LIMIT_BYTES * JSON_ESCAPE_FACTOR_MAX;
const ASYNC = { headers: { Prefer: "respond-async" } };
const LONG = "x".repeat(2 * BURST_BYTES);

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let file: PublishersFile;

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  provider.onStart(() => filled());
  const publishers = ["announced", "chunked", "compressed", "injecting", "boasting", "failing", "owing"];
  file = writePublishersFile([
    ...publishers.map((id) => ({ id, providerUrl: provider.url, keyEnv: "PROVIDER_KEY", more: SLOW })),
    { id: "other", providerUrl: provider.url, keyEnv: "PROVIDER_KEY" },
  ]);
  const env = {
    API_KEYS: "",
    PUBLISHERS_FILE: file.path,
    PROVIDER_KEY: "key",
    BODY_LIMIT_BYTES: String(LIMIT_BYTES),
  };
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

interface RawAcknowledgment {
  readonly publisher: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
  /** The body never ends. */
  readonly isOpen?: boolean;
}

interface RawAnswer {
  readonly status: number | undefined;
  readonly retryAfterSeconds: number;
  readonly body: unknown;
}

/** Without Content-Length, unless it is among the headers. Ends with the answer, also if the body doesn't. */
function acknowledgeRaw({ publisher, headers, body, isOpen }: RawAcknowledgment): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const always = { [API_KEY_HEADER]: callerKeyOf(publisher), "Content-Type": "application/json" };
    const request = httpRequest(`${stack.gatewayUrl}${ACKNOWLEDGE_PATH}`, {
      method: "POST",
      headers: { ...always, ...ASYNC.headers, ...headers },
    });
    request.on("response", async (response) => {
      const text = Buffer.concat(await response.toArray()).toString();
      const retryAfterSeconds = Number(response.headers["retry-after"]);
      resolve({ status: response.statusCode, retryAfterSeconds, body: JSON.parse(text) });
      request.destroy();
    });
    request.on("error", reject);
    request.write(body);
    if (isOpen !== true) {
      request.end();
    }
  });
}

test("a body that doesn't announce its length is charged when it has been read", async () => {
  const publisher = "chunked";
  expect((await acknowledgeRaw({ publisher, body: bodyOf(LONG) })).status).toBe(201);
  const refused = await acknowledgeRaw({ publisher, body: bodyOf("short") });
  expect(refused).toMatchObject({ status: 429, body: OVER });
});

test("whoever announces more than is read owes no more than what is read", async () => {
  const headers = { "Content-Length": "1000000000000" };
  const announced = await acknowledgeRaw({ publisher: "boasting", headers, body: "{", isOpen: true });
  expect(announced.status).toBe(413);
  const refused = await acknowledgeRaw({ publisher: "boasting", body: bodyOf("short") });
  expect(refused).toMatchObject({ status: 429, body: OVER });
  // The bucket gets one byte a second.
  expect(refused.retryAfterSeconds).toBeLessThanOrEqual(READ_BYTES_MAX);
});

test("what was read of a body that can't be used is charged as well", async () => {
  const body = gzipSync(Buffer.alloc(2 * READ_BYTES_MAX, " "));
  expect(body.length).toBeLessThan(BURST_BYTES / 4);
  const headers = { "Content-Encoding": "gzip" };
  const failed = await acknowledgeRaw({ publisher: "failing", headers, body });
  expect(failed).toMatchObject({ status: 413, body: { code: "payload_too_large" } });
  const refused = await acknowledgeRaw({ publisher: "failing", body: bodyOf("short") });
  expect(refused).toMatchObject({ status: 429, body: OVER });
  // It owes what was decompressed, not what was sent.
  expect(refused.retryAfterSeconds).toBeGreaterThan(READ_BYTES_MAX - BURST_BYTES - 600);
});

test("a body of unknown length isn't read while its publisher owes bytes", async () => {
  const first = await acknowledgeRaw({ publisher: "owing", body: bodyOf(LONG) });
  expect(first.status).toBe(201);
  // If it were read, its answer would wait for its end.
  const refused = await acknowledgeRaw({ publisher: "owing", body: "{", isOpen: true });
  expect(refused).toMatchObject({ status: 429, body: OVER });
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
