import { API_KEY_HEADER, INJECTION_PATH } from "@adrelay/contract";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  callerOf,
  injectionOf,
  KEY,
  OTHER_KEY,
  PROMPTS,
  post,
  SHOES_FILE,
  startAdServer,
  type TestAdServer,
} from "./ad-server.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let server: TestAdServer;
beforeAll(async () => {
  server = await startAdServer({ CATALOG_FILE: SHOES_FILE });
});
afterAll(() => server.dispose());

test.each([undefined, "xml", "plain", "markdown"])(
  "wrapping %s returns an ad and the prompt unchanged",
  async (type) => {
    const more = type === undefined ? {} : { request_configuration: { wrapping_type: type } };
    const { status, body } = await callerOf(server).start(PROMPTS.ok, more);
    expect(status).toBe(200);
    expect(body).toEqual({
      ad_request_id: expect.stringMatching(UUID),
      ad_response_id: expect.stringMatching(UUID),
      status: "ok",
      success: true,
      execution_time_ms: expect.any(Number),
      enhanced_prompt: expect.stringContaining(PROMPTS.ok),
      product_name: expect.any(String),
    });
    expect(body["enhanced_prompt"]).toContain(String(body["product_name"]));
  },
);

test("a request without a wrapping type gets xml", async () => {
  const { body } = await callerOf(server).start(PROMPTS.ok);
  expect(body["enhanced_prompt"]).toMatch(/^<sponsored_product_[0-9a-f]{32}>/);
});

test.each([
  [PROMPTS.rejected, 201, "rejected"],
  [PROMPTS.no_fill, 202, "no_fill"],
])("the prompt %j gets %i %s without an ad", async (prompt, status, outcome) => {
  const answer = await callerOf(server).start(prompt);
  expect(answer.status).toBe(status);
  expect(answer.body).toMatchObject({
    status: outcome,
    success: false,
    enhanced_prompt: null,
    product_name: null,
  });
  expect(answer.body["execution_time_ms"]).toBeGreaterThan(0);
});

test("a session gets the other ad next, but not a session of another publisher with its id", async () => {
  const request_context = { session_id: "turns", user_agent: "Mozilla/5.0", user_ip: "203.0.113.7" };
  const body = injectionOf(PROMPTS.ok, { request_context });
  const productFor = async (key: string) => {
    const answer = await post(`${server.url()}${INJECTION_PATH}`, body, { [API_KEY_HEADER]: key });
    return answer.body["product_name"];
  };
  const [first, next, ofOther] = [await productFor(KEY), await productFor(KEY), await productFor(OTHER_KEY)];
  expect([first, next, ofOther]).toEqual(["Stridewell Tempo 3", "Velmora Drift", "Stridewell Tempo 3"]);
});

test("the last slash of the path is optional", async () => {
  const { status } = await post(`${server.url()}${INJECTION_PATH.slice(0, -1)}`, injectionOf(PROMPTS.ok));
  expect(status).toBe(200);
});

test("a request with only the required fields is accepted", async () => {
  const { status } = await callerOf(server).start(PROMPTS.ok, { optional_context: undefined });
  expect([200, 202]).toContain(status);
});

test.each([
  ["prompt", { prompt: undefined }],
  ["prompt", { prompt: "" }],
  ["prompt", { prompt: 7 }],
  ["request_context", { request_context: undefined }],
  ["request_context", { request_context: null }],
  ["request_context.session_id", { request_context: { user_agent: "u", user_ip: "203.0.113.7" } }],
  ["request_context.session_id", { request_context: { session_id: "" } }],
  ["optional_context", { optional_context: "US" }],
  ["optional_context.country", { optional_context: { country: "usa" } }],
  ["optional_context.age", { optional_context: { age: 200 } }],
  ["request_configuration.wrapping_type", { request_configuration: { wrapping_type: "yaml" } }],
])("a wrong %s is 422 with its path", async (path, more) => {
  const { status, body } = await callerOf(server).start(PROMPTS.ok, more);
  expect(status).toBe(422);
  expect(body).toMatchObject({ code: "validation_failed", errors: [{ path }] });
});

test("a repeated member is 422", async () => {
  const body = `{"prompt":"a",${JSON.stringify(injectionOf(PROMPTS.ok)).slice(1)}`;
  const answer = await post(`${server.url()}${INJECTION_PATH}`, body);
  expect(answer.status).toBe(422);
  expect(answer.body).toMatchObject({ errors: [{ path: "prompt" }] });
});
