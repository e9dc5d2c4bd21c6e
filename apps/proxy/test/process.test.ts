/** The proxy as a process, with a worker, on a real Redis: from an injection to its acknowledgment, start and stop. */
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AppProcess,
  AppStartError,
  eventually,
  fetchMetrics,
  filled,
  type ScriptedProvider,
  startApp,
  startScriptedProvider,
  sumOf,
  TEST_API_KEY,
  TEST_PROVIDER_KEY,
} from "@adrelay/testkit";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { bodyOf, CHAT, chatStream, type Model, startModel } from "./http-fixture.ts";

let redis: TestRedis;
let provider: ScriptedProvider;
let worker: AppProcess;
const open: { stop(): Promise<unknown> }[] = [];

const common = () => ({
  REDIS_URL: redis.url,
  PROVIDER_URL: provider.url,
  PROVIDER_API_KEY: TEST_PROVIDER_KEY,
  API_KEYS: TEST_API_KEY,
  SHUTDOWN_TIMEOUT_MS: "5000",
});

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  worker = await startApp("worker", { ...common(), WORKER_OPS_PORT: "0", SWEEP_INTERVAL_MS: "100" });
});
afterAll(async () => {
  await worker.stop();
  await Promise.all([provider.close(), redis.dispose()]);
});
afterEach(async () => {
  for (const part of open.splice(0).reverse()) {
    await part.stop();
  }
});

async function startProxy(model: Model, env: Record<string, string> = {}) {
  const app = await startApp("proxy", {
    ...common(),
    PROXY_PORT: "0",
    PROXY_OPS_PORT: "0",
    OPENAI_BASE_URL: `${model.url}/v1`,
    ANTHROPIC_BASE_URL: model.url,
    PROXY_DRAIN_MS: "0",
    PROXY_INJECTION_TIMEOUT_MS: "5000",
    ...env,
  });
  open.push(model, app);
  return {
    app,
    url: `http://127.0.0.1:${app.listening["port"]}`,
    opsUrl: `http://127.0.0.1:${app.listening["ops_port"]}`,
  };
}

const HEADERS = {
  "X-Service-API-Key": TEST_API_KEY,
  authorization: "Bearer model-key-canary",
  "content-type": "application/json",
  "X-Adrelay-Session-Id": "s1",
  "X-Adrelay-User-Agent": "agent",
  "X-Adrelay-User-IP": "203.0.113.7",
};

const post = (url: string, headers = HEADERS) =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers,
    body: CHAT.replace("hello", "prompt-canary"),
  });

const STREAM = { "Content-Type": "text/event-stream" };

test("a streamed answer with an ad is acknowledged with the text that was written", async () => {
  const seen: string[] = [];
  const model = await startModel(async (request, response) => {
    seen.push((await bodyOf(request)).toString());
    response.writeHead(200, STREAM).end(chatStream(["text-", "canary"]).join(""));
  });
  const { app, url, opsUrl } = await startProxy(model);
  provider.onStart(() => filled({ enhanced_prompt: "enhanced-canary" }));
  const answer = await post(url);
  expect(await answer.text()).toBe(chatStream(["text-", "canary"]).join(""));
  expect(answer.headers.get("x-adrelay-ad")).toBe("injected");
  expect(seen).toEqual([CHAT.replace("hello", "enhanced-canary")]);
  const id = answer.headers.get("x-adrelay-ad-response-id") ?? "";
  await eventually(() => expect(provider.acknowledgmentsOf(id)).toHaveLength(1));
  expect(provider.acknowledgmentsOf(id)[0]?.fields).toMatchObject({ llm_response: "text-canary" });

  const metrics = await fetchMetrics(opsUrl);
  expect(sumOf(metrics, "adrelay_turn_ads_total", { outcome: "injected" })).toBe(1);
  expect(
    metrics.get('adrelay_turn_ads_total{outcome="skipped",publisher="default",reason="too_large"}'),
  ).toBe(0);
  expect(sumOf(metrics, "adrelay_proxy_first_byte_seconds_count")).toBe(2);
  expect(metrics.get("adrelay_streams_open")).toBe(0);
  expect(metrics.get("adrelay_copy_faults_total")).toBe(0);
  expect((await fetch(`${opsUrl}/healthz`)).status).toBe(200);
  expect((await fetch(`${opsUrl}/readyz`)).status).toBe(200);
  expect(app.logs.filter(({ event }) => event === "proxy_call")).toEqual([
    expect.objectContaining({
      ad: "injected",
      ad_response_id: id,
      step_end: "complete",
      events: 3,
      status: 200,
    }),
  ]);
  expect(JSON.stringify(app.logs)).not.toMatch(/canary/);
});

test("calls without the user's context pass without an ad", async () => {
  const model = await startModel((_, response) =>
    response.writeHead(200, STREAM).end(chatStream(["a"]).join("")),
  );
  const { app, url } = await startProxy(model);
  const { "X-Adrelay-Session-Id": _, ...headers } = HEADERS;
  const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body: CHAT });
  expect(await answer.text()).toBe(chatStream(["a"]).join(""));
  expect(answer.headers.get("x-adrelay-ad")).toBe("skipped; reason=no_context");
  const detail = "X-Adrelay-Session-Id";
  expect(answer.headers.get("x-adrelay-ad-detail")).toBe(detail);
  await eventually(() => expect(app.logs).toContainEqual(expect.objectContaining({ ad_detail: detail })));
});

test("a stop lets running answers end, refuses new calls, and cuts what is left", async () => {
  const running: { end(): void }[] = [];
  const model = await startModel(async (request, response) => {
    await bodyOf(request);
    response.writeHead(200, STREAM);
    response.write(chatStream(["a"])[0]);
    running.push({ end: () => response.end(chatStream(["b"]).join("")) });
  });
  const { app, url, opsUrl } = await startProxy(model, { PROXY_DRAIN_MS: "5000" });
  const answers: Response[] = [];
  while (answers.length < 100) {
    answers.push(...(await Promise.all(Array.from({ length: 25 }, () => post(url)))));
  }
  // On a loaded machine a few may get no ad.
  const ids = answers.map((answer) => answer.headers.get("x-adrelay-ad-response-id"));
  const texts = answers.map((answer) => answer.text().catch(() => "cut"));
  await eventually(() => expect(running).toHaveLength(100));
  app.kill("SIGTERM");
  await eventually(async () => expect((await fetch(`${opsUrl}/readyz`)).status).toBe(503));
  await expect(fetch(`${url}/v1/models`, { headers: HEADERS })).rejects.toThrow();
  for (const call of running.slice(0, 50)) {
    call.end();
  }
  const ended = await Promise.all(texts);
  expect(ids.filter((id) => id !== null).length).toBeGreaterThan(50);
  expect(ended.filter((text) => text.includes("[DONE]"))).toHaveLength(50);
  expect(ended.filter((text) => text === "cut")).toHaveLength(50);
  expect(await app.exited).toBe(0);
  await eventually(() => {
    for (const [at, id] of ids.entries()) {
      if (id !== null) {
        const text = provider.acknowledgmentsOf(id)[0]?.fields["llm_response"];
        expect(text).toBe(ended[at] === "cut" ? "a" : "ab");
      }
    }
  });
});

test("all faults of the settings are told at once, without their values", async () => {
  const start = startApp("proxy", {
    ...common(),
    API_KEY_HEADERS: "Authorization, X-Key, x-api-key",
    PROXY_PORT: "port-canary",
    OPENAI_BASE_URL: "https://user:canary@models.example/v1",
    ANTHROPIC_BASE_URL: "canary",
  });
  const failure = await start.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(failure).toBeInstanceOf(AppStartError);
  const { exit, stderr } = failure instanceof AppStartError ? failure : { exit: 0, stderr: "" };
  expect(exit).toBe(2);
  for (const name of ["PROXY_PORT", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"]) {
    expect(stderr).toContain(name);
  }
  expect(stderr).not.toMatch(/canary/);
});

test("a model's key header can't be a header of publishers' keys", async () => {
  const start = startApp("proxy", { ...common(), API_KEY_HEADERS: "Authorization, X-Key, X-API-Key" });
  const stderr = await start.then(
    () => "",
    (error: unknown) => (error instanceof AppStartError ? error.stderr : ""),
  );
  expect(stderr).toContain("must not name Authorization");
  expect(stderr).toContain("must not name X-API-Key");
});
