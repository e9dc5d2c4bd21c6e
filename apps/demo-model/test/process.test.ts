/** The demo model as a process: errors of input, what it logs, and how it stops. */
import { type DemoModel, startDemoModel } from "@adrelay/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { bodyOf, call, eventsOf, readAll, SURFACES } from "./model-client.ts";

let model: DemoModel;
beforeEach(async () => {
  model = await startDemoModel({ DEMO_MODEL_RECORDS: "0" });
});
afterEach(() => model.stop());

const KEY = { authorization: "Bearer key-of-a-test" };
const CLAUDE = { "x-api-key": "key-of-a-test", "anthropic-version": "2023-06-01" };
const send = async (method: string, path: string, headers: Record<string, string>, body?: string) => {
  const response = await fetch(`${model.url}${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
  });
  return { status: response.status, allow: response.headers.get("allow"), body: await response.json() };
};
const openAiError = (message: string, more: object = {}) => ({
  error: {
    type: "invalid_request_error",
    message: expect.stringContaining(message),
    param: null,
    code: null,
    ...more,
  },
});
const anthropicError = (type: string, message: string) => ({
  type: "error",
  error: { type, message: expect.stringContaining(message) },
  request_id: expect.stringMatching(/^req_/),
});

test("wrong calls get errors in the form of the interface", async () => {
  const [chat, claude] = ["/v1/chat/completions", "/v1/messages"];
  expect(await send("POST", chat, {}, "{}")).toMatchObject({
    status: 401,
    body: openAiError("API key", { code: "invalid_api_key" }),
  });
  expect(await send("POST", claude, {}, "{}")).toMatchObject({
    status: 401,
    body: anthropicError("authentication_error", "API key"),
  });
  expect(await send("POST", claude, { "x-api-key": "k" }, "{}")).toMatchObject({
    status: 400,
    body: anthropicError("invalid_request_error", "anthropic-version"),
  });
  expect(await send("GET", chat, KEY)).toMatchObject({
    status: 405,
    allow: "POST",
    body: openAiError("GET"),
  });
  expect(await send("DELETE", claude, CLAUDE)).toMatchObject({
    status: 405,
    body: anthropicError("invalid_request_error", "DELETE"),
  });
  expect(await send("POST", "/v1/none", KEY, "{}")).toMatchObject({
    status: 404,
    body: openAiError("/v1/none"),
  });
  expect(await send("POST", "/v1/messages/none", CLAUDE, "{}")).toMatchObject({
    status: 404,
    body: anthropicError("not_found_error", "/v1/messages/none"),
  });
  expect(await send("POST", chat, KEY, "{")).toMatchObject({ status: 400, body: openAiError("JSON") });
  const encoded = { ...KEY, "content-encoding": "rot13" };
  expect(await send("POST", chat, encoded, "{}")).toMatchObject({ status: 415, body: openAiError("read") });
});

test.each([
  ["/v1/chat/completions", { model: "m" }, "messages"],
  ["/v1/chat/completions", bodyOf("chat/completions", "x", { n: 2 }), "n"],
  ["/v1/chat/completions", bodyOf("chat/completions", "x", { messages: [] }), "messages"],
  ["/v1/responses", { input: "x" }, "model"],
  ["/v1/embeddings", { model: "m" }, "input"],
])("%s refuses %j and names the member", async (path, body, param) => {
  expect(await send("POST", path, KEY, JSON.stringify(body))).toMatchObject({
    status: 400,
    body: openAiError(param, { param }),
  });
});

test("messages without a limit of tokens are refused", async () => {
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "x" }] });
  expect(await send("POST", "/v1/messages", CLAUDE, body)).toMatchObject({
    status: 400,
    body: anthropicError("invalid_request_error", "max_tokens"),
  });
});

test("records are off unless they were asked for, and readiness is answered", async () => {
  expect((await fetch(`${model.url}/demo/calls`)).status).toBe(404);
  expect((await fetch(`${model.url}/readyz`)).status).toBe(200);
});

test("a stop cuts the streams that run and those that stall, and exits with 0", async () => {
  const faults = ["events=1000, delay=50", "stall-after=2"];
  const streams = await Promise.all(
    SURFACES.flatMap((surface) => faults.map((one) => call(model.url, surface, { faults: one }))),
  );
  const reading = streams.map(readAll);
  const startedAtMs = performance.now();
  expect(await model.app.stop()).toBe(0);
  expect(performance.now() - startedAtMs).toBeLessThan(5000);
  for (const { bytes, isWhole } of await Promise.all(reading)) {
    expect(isWhole).toBe(false);
    expect(eventsOf(bytes).length).toBeGreaterThan(0);
  }
});

test("no line of the log has a text, a key or an unknown path", async () => {
  await readAll(await call(model.url, "messages", { text: "word-of-the-user" }));
  await send("POST", "/v1/path-of-the-user?query-of-the-user", KEY, "{}");
  await model.app.stop();
  const lines = JSON.stringify(model.app.logs);
  expect(model.app.logs.filter(({ event }) => event === "request").map(({ operation }) => operation)).toEqual(
    ["messages", "other"],
  );
  expect(lines).not.toMatch(/of-the-user|key-of-a-test|take the simpler/);
});

test("settings that can't be used are named, and the process exits with 2", async () => {
  const starting = startDemoModel({ DEMO_MODEL_PORT: "99999", DEMO_MODEL_DELAY_MS: "x", LOG_LEVEL: "loud" });
  await expect(starting).rejects.toThrow(/ended with 2 .*DEMO_MODEL_PORT.*DEMO_MODEL_DELAY_MS.*LOG_LEVEL/s);
});
