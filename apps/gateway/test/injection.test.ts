/** Injections through a real gateway: what passes through, what becomes a fallback, and what is recorded. */
import { brotliCompressSync, gzipSync } from "node:zlib";
import { INJECTION_PATH } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type Behaviour,
  eventually,
  fetchMetrics,
  filled,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  sumOf,
  TEST_API_KEY,
  TEST_INJECTION,
  TEST_PROVIDER_KEY,
  unfilled,
} from "@adrelay/testkit";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

/** For injections that get no answer in time. */
const SHORT = { headers: { "X-Adrelay-Timeout-Ms": "400" } };

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let caller: RelayCaller;

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  stack = await startRelayStack({ redis, providerUrl: provider.url, env: { INJECTION_TIMEOUT_MS: "5000" } });
  caller = relayCaller(stack.gatewayUrl);
});
afterAll(async () => {
  await stack.stop();
  await Promise.all([provider.close(), redis.dispose()]);
});
beforeEach(() => provider.onStart(() => filled()));

function bodyOf(behaviour: Behaviour): unknown {
  return behaviour.kind === "answer" ? behaviour.body : undefined;
}

/** The log line of one request, once it is written. */
function logLineOf(requestId: string) {
  return eventually(async () => {
    const line = stack.apps
      .get("gateway")
      ?.logs.find((one) => one["request_id"] === requestId && one["event"] === "request");
    expect(line).toBeDefined();
    return line;
  });
}

async function recorded(outcome: string): Promise<number> {
  return sumOf(await fetchMetrics(stack.gatewayOpsUrl), "adrelay_injections_recorded_total", { outcome });
}

test.each([
  [filled(), 200, "awaiting"],
  [unfilled(201), 201, "unacknowledgeable"],
  [unfilled(202), 202, "unacknowledgeable"],
])("an answer %j passes through with its status and is recorded", async (behaviour, status, state) => {
  provider.onStart(() => behaviour);
  const answer = await caller.inject();
  expect(answer.status).toBe(status);
  expect(answer.body).toEqual(behaviour.kind === "answer" ? behaviour.body : {});
  const entry = await caller.lookUp(String(answer.body["ad_response_id"]));
  expect(entry.body).toMatchObject({ state, ad_ack_id: null });
});

/** The bytes of a filled answer's body. */
function filledBytes(): Buffer {
  const { body } = Object(filled({ product_name: "Grüße 東京" }));
  return Buffer.from(JSON.stringify(body));
}

test.each([
  ["gzip", "gzip", gzipSync],
  ["br", "br", brotliCompressSync],
  ["gzip, br", "gzip, then br", (bytes: Buffer) => brotliCompressSync(gzipSync(bytes))],
  [
    "identity",
    "a byte order mark",
    (bytes: Buffer) => Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]),
  ],
] as const)(
  "an answer with Content-Encoding %s and %s reaches the caller readable",
  async (coding, _name, encode) => {
    const bytes = filledBytes();
    const headers = { "content-type": "application/json", "content-encoding": coding };
    provider.onStart(() => ({ kind: "raw", status: 200, headers, bytes: encode(bytes) }));
    const response = await fetch(`${stack.gatewayUrl}${INJECTION_PATH}`, {
      method: "POST",
      headers: { "content-type": "application/json", "X-Service-API-Key": TEST_API_KEY },
      body: JSON.stringify(TEST_INJECTION),
    });
    expect(response.headers.get("content-encoding")).toBeNull();
    expect(response.headers.get("X-Adrelay-Fallback")).toBeNull();
    expect(Buffer.from(await response.arrayBuffer())).toEqual(bytes);
  },
);

test("an answer that can't be decompressed is a fallback, whatever its status", async () => {
  const headers = { "content-type": "application/json", "content-encoding": "gzip" };
  const bytes = gzipSync(filledBytes()).subarray(0, 40);
  provider.onStart(() => ({ kind: "raw", status: 200, headers, bytes }));
  expect((await caller.inject()).headers.get("X-Adrelay-Fallback")).toBe("malformed_answer");
  provider.onStart(() => ({ kind: "raw", status: 422, headers, bytes }));
  // It isn't in the service's form, so it may be the edge's.
  expect((await caller.inject()).headers.get("X-Adrelay-Fallback")).toBe("unexpected_status");
});

test.each([400, 409, 422])("the provider's %d reaches the caller unchanged", async (status) => {
  provider.onStart(() => ({ kind: "answer", status, body: { detail: "their own words" } }));
  const answer = await caller.inject();
  expect(answer.status).toBe(status);
  expect(answer.body).toEqual({ detail: "their own words" });
});

test.each([
  [{ kind: "answer", status: 500 }, "provider_error"],
  [{ kind: "answer", status: 401 }, "unauthorized"],
  [{ kind: "answer", status: 403 }, "unauthorized"],
  [{ kind: "answer", status: 429 }, "rate_limited"],
  [{ kind: "answer", status: 302, headers: { location: "http://127.0.0.1:1/" } }, "unexpected_status"],
  [{ kind: "raw", status: 200, bytes: "<html>" }, "malformed_answer"],
  [{ kind: "answer", status: 200, body: { status: "ok" } }, "malformed_answer"],
  [{ kind: "hang" }, "timeout"],
  [{ kind: "drip" }, "timeout"],
  [{ kind: "reset" }, "connection_lost"],
] as const)(
  "when the provider does %j the caller gets a no-fill for the reason %s",
  async (behaviour, reason) => {
    provider.onStart(() => behaviour);
    const answer = await caller.inject(reason === "timeout" ? SHORT : {});
    expect(answer.status).toBe(202);
    expect(answer.headers.get("X-Adrelay-Fallback")).toBe(reason);
    expect(answer.body).toMatchObject({
      status: "no_fill",
      success: false,
      enhanced_prompt: null,
      product_name: null,
    });
    expect(answer.durationMs).toBeLessThan(2500);
    const acknowledged = await caller.acknowledgeUntilAccepted(answer.body["ad_response_id"], "text");
    expect(acknowledged.status).toBe(406);
  },
);

test.each(["ad_request_id", "status", "success", "execution_time_ms", "product_name"])(
  "an ad without %s passes through as it came, and is awaited",
  async (member) => {
    const { [member]: _left, ...body } = Object(bodyOf(filled()));
    provider.onStart(() => ({ kind: "answer", status: 200, body }));
    const answer = await caller.inject();
    expect([answer.status, answer.body]).toEqual([200, body]);
    expect((await caller.lookUp(String(body.ad_response_id))).body["state"]).toBe("awaiting");
  },
);

test("a 202 without any member passes through, and is counted", async () => {
  const before = await recorded("no_fill");
  provider.onStart(() => ({ kind: "answer", status: 202, body: {} }));
  const answer = await caller.inject();
  expect([answer.status, answer.text]).toEqual([202, "{}"]);
  expect(answer.headers.has("X-Adrelay-Fallback")).toBe(false);
  await eventually(async () => expect(await recorded("no_fill")).toBe(before + 1));
});

test.each([
  [{ enhanced_prompt: 7 }, "enhanced_prompt must be a string"],
  [{ ad_response_id: "secret-of-a-user" }, "ad_response_id must be a UUID"],
  [{ success: false }, "success must not be false in a 200"],
])("the fault of an ad with %j is in a header and in the log, without its value", async (wrong, fault) => {
  provider.onStart(() => filled(wrong));
  const answer = await caller.inject();
  expect(answer.headers.get("X-Adrelay-Fallback")).toBe("malformed_answer");
  expect(answer.headers.get("X-Adrelay-Fallback-Detail")).toBe(fault);
  const line = await logLineOf(String(answer.headers.get("X-Request-Id")));
  expect(line).toMatchObject({ outcome: "fallback_malformed_answer", answer_fault: fault });
  expect(JSON.stringify(line)).not.toContain("secret-of-a-user");
});

test("an ad says by when it must be acknowledged, as the look-up does", async () => {
  const answer = await caller.inject();
  const by = answer.headers.get("X-Adrelay-Acknowledge-By");
  const entry = await caller.lookUp(String(answer.body["ad_response_id"]));
  expect(by).toBe(entry.body["deadline_at"]);
  expect(Date.parse(String(by))).toBeGreaterThan(Date.now());
  expect(entry.headers.get("X-Adrelay-State")).toBe("awaiting");
  provider.onStart(() => unfilled(202));
  expect((await caller.inject()).headers.has("X-Adrelay-Acknowledge-By")).toBe(false);
});

test("a caller's own time limit holds", async () => {
  provider.onStart(() => ({ kind: "hang" }));
  const answer = await caller.inject({ headers: { "X-Adrelay-Timeout-Ms": "50" } });
  expect(answer.headers.get("X-Adrelay-Fallback")).toBe("timeout");
  expect(answer.durationMs).toBeLessThan(2500);
});

test.each(["0", "30001", "-5", "1.5", "soon", ""])("the time limit %j is refused by name", async (limit) => {
  const answer = await caller.inject({ headers: { "X-Adrelay-Timeout-Ms": limit } });
  expect(answer.status).toBe(422);
  expect(answer.body["errors"]).toEqual([expect.objectContaining({ path: "X-Adrelay-Timeout-Ms" })]);
});

test("a 200 that comes after the time limit is recorded as abandoned", async () => {
  const before = await recorded("abandoned");
  const [late, timedOut] = [filled(), Promise.withResolvers<void>()];
  provider.onStart(() => ({ kind: "held", until: timedOut.promise, answer: late }));
  const answer = await caller.inject(SHORT);
  expect(answer.headers.get("X-Adrelay-Fallback")).toBe("timeout");
  timedOut.resolve();
  await eventually(async () => expect(await recorded("abandoned")).toBe(before + 1));
  const body: unknown = late.kind === "answer" ? late.body : undefined;
  const acknowledged = await caller.acknowledgeUntilAccepted(Object(body).ad_response_id, "text");
  expect(acknowledged.status).toBe(406);
});

test("a 200 whose caller has hung up is recorded as abandoned", async () => {
  const before = await recorded("abandoned");
  const [called, noticed] = [new AbortController(), Promise.withResolvers<void>()];
  provider.onStart(() => {
    called.abort();
    return { kind: "held", until: noticed.promise, answer: filled() };
  });
  const headers = { "X-Request-Id": "of-a-gone-caller", "X-Adrelay-Timeout-Ms": "20000" };
  await expect(caller.inject({ headers, signal: called.signal })).rejects.toThrow();
  await logLineOf("of-a-gone-caller");
  noticed.resolve();
  await eventually(async () => expect(await recorded("abandoned")).toBe(before + 1));
});

test("the body reaches the provider byte for byte, with our key and the request's id", async () => {
  const body = '{"z":1, "prompt" : "\\ud800 \\u0000", "big":12345678901234567890, "prompt":"twice", "1":2}';
  const answer = await caller.send(INJECTION_PATH, body, { headers: { "X-Request-Id": "req-7" } });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("X-Request-Id")).toBe("req-7");
  const seen = provider.posts.at(-1);
  expect(seen?.body.toString()).toBe(body);
  expect(seen?.headers).toMatchObject({ "x-service-api-key": TEST_PROVIDER_KEY, "x-request-id": "req-7" });
});

test("the log line of a fallback without an answer says why there is none", async () => {
  provider.onStart(() => ({ kind: "reset" }));
  await caller.inject({ headers: { "X-Request-Id": "fallback-with-a-cause" } });
  await eventually(() =>
    expect(stack.apps.get("gateway")?.logs).toContainEqual(
      expect.objectContaining({
        request_id: "fallback-with-a-cause",
        outcome: "fallback_connection_lost",
        code: "connection_lost",
        cause: expect.stringMatching(/^\w+$/),
      }),
    ),
  );
});
