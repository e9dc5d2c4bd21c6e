import { ACKNOWLEDGE_PATH, INJECTION_PATH } from "@adrelay/contract";
import { eventually, fetchMetrics, sumOf } from "@adrelay/testkit";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  callerOf,
  get,
  injectionOf,
  PROMPTS,
  post,
  startAdServer,
  type TestAdServer,
  UNKNOWN_ID,
} from "./ad-server.ts";

let server: TestAdServer;
beforeAll(async () => {
  server = await startAdServer();
});
afterAll(async () => {
  const failed = server.app().logs.filter((line) => line["event"] === "request_failed");
  await server.dispose();
  // In every test above, the fault must be the caller's and never ours.
  expect(failed).toEqual([]);
});

const PATHS = [INJECTION_PATH, ACKNOWLEDGE_PATH];

test.each(
  PATHS.flatMap((path) => [[path, null] as const, [path, ""] as const, [path, "not-a-key"] as const]),
)("POST %s with the key %j is 401", async (path, key) => {
  const { status, headers, body } = await post(`${server.url()}${path}`, {}, { "X-Service-API-Key": key });
  expect(status).toBe(401);
  expect(headers.get("content-type")).toContain("application/problem+json");
  expect(body).toMatchObject({ code: "unauthenticated", request_id: headers.get("x-request-id") });
});

test.each(PATHS.flatMap((path) => [path, path.slice(0, -1)]))(
  "a GET of %s is 405 with Allow",
  async (path) => {
    const { status, headers, body } = await get(`${server.url()}${path}`);
    expect([status, headers.get("allow"), body["code"]]).toEqual([405, "POST", "method_not_allowed"]);
  },
);

test("an unknown path is 404 with a problem body", async () => {
  expect((await get(`${server.url()}/api/nothing/`)).body).toMatchObject({ status: 404, code: "not_found" });
});

test.each([
  "application/x-www-form-urlencoded",
  "text/plain",
  "application/json; charset=latin1",
  ";;;",
  null,
])("the Content-Type %s is 415", async (type) => {
  const { status } = await post(`${server.url()}${ACKNOWLEDGE_PATH}`, "{}", { "Content-Type": type });
  expect(status).toBe(415);
});

test.each(["", "{", "nonsense", '{"a":NaN}', '{"a":1}x', "\ufeff{}x", "\u0000"])(
  "the body %j is 400",
  async (raw) => {
    const { status, body } = await post(`${server.url()}${ACKNOWLEDGE_PATH}`, raw);
    expect([status, body["code"]]).toEqual([400, "invalid_json"]);
  },
);

test.each(["[]", "null", '"text"', "7"])("the body %s is 422, since it must be an object", async (raw) => {
  expect((await post(`${server.url()}${INJECTION_PATH}`, raw)).status).toBe(422);
});

test("bytes that aren't UTF-8 are 400", async () => {
  const response = await fetch(`${server.url()}${INJECTION_PATH}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Service-API-Key": "key-of-a-publisher" },
    body: Uint8Array.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]),
  });
  expect(response.status).toBe(400);
});

test("a body with a wrong or unknown Content-Encoding is 400 or 415", async () => {
  const answer = await post(`${server.url()}${INJECTION_PATH}`, "{}", { "Content-Encoding": "gzip" });
  expect(answer.body).toMatchObject({ status: 400, detail: "the body can't be read as it was sent" });
  const unknown = await post(`${server.url()}${INJECTION_PATH}`, "{}", { "Content-Encoding": "nonsense" });
  expect(unknown.status).toBe(415);
});

test("a body of exactly the limit is accepted, however it is escaped, and one byte more is 413", async () => {
  const caller = callerOf(server);
  const url = `${server.url()}${ACKNOWLEDGE_PATH}`;
  const { id, product } = await caller.served();
  const end = ` ${product}`;
  const frame = JSON.stringify({ ad_response_id: id, llm_response: end }).length;
  const fill = "\u4e2d ".repeat(Math.floor((1_048_576 - frame) / 4));
  const plain = `${fill}${"a".repeat((1_048_576 - frame) % 4)}${end}`;
  expect((await caller.acknowledge(id, `${plain}a`)).status).toBe(413);
  const escaped = JSON.stringify({ ad_response_id: id, llm_response: plain }).replaceAll("\u4e2d", "\\u4e2d");
  expect(escaped.length).toBeGreaterThan(1_048_576);
  const { status, body } = await post(url, escaped);
  expect([status, body["status"]]).toEqual([200, "ok"]);
});

test.each(["\\u0000PRODUCT\\u0000", "\\ud800 PRODUCT \\udc00", "走る 🏃‍♀️ عربي PRODUCT \\u2028 \\\\ end"])(
  "the answer %s is read unchanged",
  async (text) => {
    const { id, product } = await callerOf(server).served();
    const raw = `{"ad_response_id":"${id}","llm_response":"${text.replace("PRODUCT", product)}"}`;
    const { status, body } = await post(`${server.url()}${ACKNOWLEDGE_PATH}`, raw);
    expect([status, body["status"]]).toEqual([200, "ok"]);
  },
);

test("a prompt with lone surrogates and NUL comes back unchanged", async () => {
  const raw = JSON.stringify(injectionOf("PROMPT")).replace("PROMPT", `${PROMPTS.ok} \\ud800\\u0000</ADS>`);
  const { status, body } = await post(`${server.url()}${INJECTION_PATH}`, raw);
  expect(status).toBe(200);
  expect(body["enhanced_prompt"]).toContain(`${PROMPTS.ok} \ud800\u0000</ADS>`);
});

test.each([
  ["10,000 unknown fields", Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`field_${n}`, n]))],
  ["fields of Object.prototype", { constructor: 1, toString: null, hasOwnProperty: {}, valueOf: [] }],
])("a body with %s is accepted", async (_what, fields) => {
  const { status } = await callerOf(server).start(PROMPTS.ok, fields);
  expect(status).toBe(200);
});

test("a member named __proto__ is an ordinary field", async () => {
  const raw = JSON.stringify(injectionOf(PROMPTS.ok)).replace("{", '{"__proto__":{"prompt":7},');
  expect((await post(`${server.url()}${INJECTION_PATH}`, raw)).status).toBe(200);
});

test.each(["[", '{"a":'])("nesting %j 100,000 times doesn't crash the server", async (bracket) => {
  const closing = bracket === "[" ? "]" : "}";
  const inner = bracket === "[" ? "" : "1";
  const nested = `${bracket.repeat(100_000)}${inner}${closing.repeat(100_000)}`;
  const raw = JSON.stringify(injectionOf(PROMPTS.ok)).replace("{", `{"deep":${nested},`);
  const { status } = await post(`${server.url()}${INJECTION_PATH}`, raw);
  expect([200, 400, 422]).toContain(status);
  expect((await post(`${server.url()}${INJECTION_PATH}`, bracket.repeat(100_000))).status).toBe(400);
});

test("a repeated id is 422", async () => {
  const raw = `{"ad_response_id":"${UNKNOWN_ID}","\\u0061d_response_id":"${UNKNOWN_ID}","llm_response":""}`;
  expect((await post(`${server.url()}${ACKNOWLEDGE_PATH}`, raw)).status).toBe(422);
});

test.each([
  ['"age":34', '"age":12,"\\u0061ge":34', "optional_context.age"],
  ['"session_id":', '"session_id":"another","session_id":', "request_context.session_id"],
])("a context with %s repeated as %s is 422", async (once, twice, path) => {
  const raw = JSON.stringify(injectionOf(PROMPTS.ok)).replace(once, twice);
  const { status, body } = await post(`${server.url()}${INJECTION_PATH}`, raw);
  expect([status, body["errors"]]).toEqual([422, [{ path, message: "must not be repeated" }]]);
});

const CONTEXT = { session_id: "sess-1", user_agent: "Mozilla/5.0", user_ip: "203.0.113.7" };
const contextOf = (more: object) => ({ request_context: { ...CONTEXT, ...more } });
const unreadableNow = async (attribute: string) =>
  sumOf(await fetchMetrics(server.opsUrl()), "adserver_unreadable_attributes_total", { attribute });

/** The log line of a request, which may come after its answer. */
const logLineOf = (id: unknown) =>
  eventually(() => {
    const line = server.app().logs.find((each) => each["ad_response_id"] === id);
    expect(line).toBeDefined();
    return line;
  });

test.each([
  ["no optional object", { request_configuration: null, optional_context: null }],
  ["no wrapping type", { request_configuration: { wrapping_type: null } }],
  ["no user agent", contextOf({ user_agent: null })],
  ["an empty user agent", contextOf({ user_agent: "" })],
  ["no address", contextOf({ user_ip: null })],
  ["an unknown address", contextOf({ user_ip: "unknown" })],
  ["a port", contextOf({ user_ip: "203.0.113.7:51234" })],
  ["an IPv6 address with a port", contextOf({ user_ip: "[2001:db8::1]:51234" })],
  ["a zone", contextOf({ user_ip: "fe80::1%eth0" })],
  ["a list of proxies", contextOf({ user_ip: "203.0.113.7, 10.0.0.1" })],
  [
    "nulls",
    { optional_context: { country: null, region: null, city: null, asn: null, age: null, gender: null } },
  ],
  [
    "texts",
    { optional_context: { country: " us", region: "ca ", city: "", asn: "AS64500", age: "34", gender: "F" } },
  ],
  ["no country's code", { optional_context: { country: "T1" } }],
  ["other types", { optional_context: { country: 1, region: [], city: {}, asn: true, age: {}, gender: 2 } }],
])("a request with %s gets an answer as any other", async (_what, more) => {
  const { status } = await callerOf(server).start(PROMPTS.ok, more);
  expect([200, 202]).toContain(status);
});

test("unreadable attributes are in the request's log line and counted", async () => {
  const before = await Promise.all(["country", "age", "user_ip", "city"].map(unreadableNow));
  const { body } = await callerOf(server).start(PROMPTS.ok, {
    ...contextOf({ user_ip: "nowhere" }),
    optional_context: { country: "XX", age: "secret-age", city: null },
  });
  const line = await logLineOf(body["ad_response_id"]);
  expect(line).toMatchObject({
    event: "request",
    unreadable: ["request_context.user_ip", "optional_context.country", "optional_context.age"],
  });
  expect(JSON.stringify(line)).not.toMatch(/nowhere|secret-age/);
  const after = await Promise.all(["country", "age", "user_ip", "city"].map(unreadableNow));
  expect(after.map((count, index) => count - (before[index] ?? 0))).toEqual([1, 1, 1, 0]);
});

test("a request whose attributes can all be read has no list of unreadable ones", async () => {
  const { body } = await callerOf(server).start(PROMPTS.ok);
  const line = await logLineOf(body["ad_response_id"]);
  expect(line).not.toHaveProperty("unreadable");
});

test("any JSON value of optional attributes gets an answer and never a fault", async () => {
  const value = fc.jsonValue({ maxDepth: 2 });
  const names = ["country", "region", "city", "asn", "age", "gender"];
  const sent = fc.record(
    { context: fc.dictionary(fc.constantFrom(...names), value), user_agent: value, user_ip: value },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(sent, async ({ context: optional_context, user_agent, user_ip }) => {
      // The two mistakes that are refused: a country of three letters, and an age that nobody has.
      const { country, age } = optional_context ?? {};
      fc.pre(!(typeof country === "string" && /^[a-z]{3}$/i.test(country.trim())));
      fc.pre(!(typeof age !== "object" && Number(age) > 120));
      const more = { ...contextOf({ user_agent, user_ip }), optional_context };
      const { status } = await callerOf(server).start(PROMPTS.no_fill, more);
      expect(status).toBe(202);
    }),
    { numRuns: 200 },
  );
});

test("null for a required member of an acknowledgment is 422 with what is right", async () => {
  const { status, body } = await post(`${server.url()}${ACKNOWLEDGE_PATH}`, {
    ad_response_id: null,
    llm_response: null,
    unknown_member: null,
  });
  expect(status).toBe(422);
  expect(body["errors"]).toEqual([
    { path: "ad_response_id", message: expect.stringContaining("UUID") },
    { path: "llm_response", message: "must be a string" },
  ]);
});

test("a malformed path is 400", async () => {
  const { body } = await get(`${server.url()}/acknowledgments/%zz`);
  expect(body).toMatchObject({ status: 400, detail: "the path is malformed" });
});

test("health checks are on the ops listener alone", async () => {
  expect((await get(`${server.opsUrl()}/healthz`)).status).toBe(200);
  expect((await get(`${server.url()}/healthz`)).status).toBe(404);
  expect((await get(`${server.url()}/metrics`)).status).toBe(404);
  expect((await get(`${server.opsUrl()}/readyz`)).body).toMatchObject({
    status: "ready",
    checks: { redis: "ok" },
  });
});
