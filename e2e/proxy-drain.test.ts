/**
 * A proxy that stops lets running answers end. None is cut before PROXY_DRAIN_MS is over, and all have ended within
 * SHUTDOWN_TIMEOUT_MS after it. Whatever the caller has got is acknowledged.
 */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AppProcess,
  eventually,
  type ScriptedProvider,
  startApp,
  startScriptedProvider,
  TEST_API_KEY,
  TEST_PROVIDER_KEY,
} from "@adrelay/testkit";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

const STREAMS = 500;
/** If all of them asked for their ads at once, a busy machine would be too slow for many. It is too slow for some anyway. */
const AT_ONCE = 25;
const SHUTDOWN_TIMEOUT_MS = 10_000;
/** How much longer a stop may take on a busy machine: for the last log lines and the end of the process. */
const GRACE_MS = 2000;
const OPENING_LIMIT_MS = 60_000;

let redis: TestRedis;
let provider: ScriptedProvider;
let worker: AppProcess;
const open: (() => Promise<unknown>)[] = [];

const common = () => ({
  REDIS_URL: redis.url,
  PROVIDER_URL: provider.url,
  PROVIDER_API_KEY: TEST_PROVIDER_KEY,
  API_KEYS: TEST_API_KEY,
  SHUTDOWN_TIMEOUT_MS: String(SHUTDOWN_TIMEOUT_MS),
});

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  worker = await startApp("worker", { ...common(), WORKER_OPS_PORT: "0" });
});
afterAll(async () => {
  await worker.stop();
  await Promise.all([provider.close(), redis.dispose()]);
});
afterEach(async () => {
  for (const close of open.splice(0).reverse()) {
    await close();
  }
});

/** Answers that the test continues and ends. */
async function startModel() {
  const answers: ServerResponse[] = [];
  const server = createServer((request, response) => {
    request.resume().once("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(eventOf({ content: "begun" }));
      answers.push(response);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  open.push(async () => {
    server.closeAllConnections();
    server.close();
  });
  // It listens on a port, not on a path.
  const { port } = server.address() as AddressInfo;
  return { answers, url: `http://127.0.0.1:${port}` };
}

function eventOf(delta: object, finish: string | null = null): string {
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
}

/** Starts a proxy, and opens answers through it. */
async function openAnswers(drainMs: number, streams = STREAMS) {
  const model = await startModel();
  const app = await startApp("proxy", {
    ...common(),
    PROXY_PORT: "0",
    PROXY_OPS_PORT: "0",
    OPENAI_BASE_URL: `${model.url}/v1`,
    PROXY_DRAIN_MS: String(drainMs),
    PROXY_INJECTION_TIMEOUT_MS: "30000",
    QUOTA_INJECTIONS_IN_FLIGHT: "off",
  });
  open.push(() => app.stop());
  const begun: Awaited<ReturnType<typeof ask>>[] = [];
  while (begun.length < streams) {
    begun.push(...(await Promise.all(Array.from({ length: Math.min(AT_ONCE, streams) }, () => ask(app)))));
  }
  expect(model.answers).toHaveLength(streams);
  const ended = begun.map(async ({ id, answer }) => {
    const text = await answer.text().catch(() => "cut");
    return { id, text, atMs: performance.now() };
  });
  return { model, app, ended };
}

async function ask(app: AppProcess) {
  const answer = await fetch(`http://127.0.0.1:${app.listening["port"]}/v1/chat/completions`, {
    method: "POST",
    headers: {
      "X-Service-API-Key": TEST_API_KEY,
      authorization: "Bearer key-of-the-model",
      "content-type": "application/json",
      "X-Adrelay-Session-Id": "session",
      "X-Adrelay-User-Agent": "agent",
      "X-Adrelay-User-IP": "203.0.113.7",
    },
    body: '{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}',
    signal: AbortSignal.timeout(OPENING_LIMIT_MS + SHUTDOWN_TIMEOUT_MS),
  });
  expect(answer.status).toBe(200);
  return { id: answer.headers.get("x-adrelay-ad-response-id"), answer };
}

/** Each answer with an ad is acknowledged with this text. */
async function acknowledgedAs(text: string, ended: readonly { readonly id: string | null }[]): Promise<void> {
  const ids = ended.flatMap(({ id }) => (id === null ? [] : [id]));
  expect(ids.length).toBeGreaterThan(ended.length / 2);
  await eventually(() => {
    const texts = ids.map((id) => provider.acknowledgmentsOf(id)[0]?.fields["llm_response"]);
    expect(texts.filter((one) => one !== text)).toEqual([]);
  }, 30_000);
}

/** Waits until the proxy has begun its stop: its ops listener is the last to close. */
async function stopping(app: AppProcess): Promise<void> {
  const url = `http://127.0.0.1:${app.listening["ops_port"]}/readyz`;
  await eventually(async () => expect((await fetch(url)).status).toBe(503));
}

test("a stop cuts none of 500 answers that end within the drain limit", async () => {
  const { model, app, ended } = await openAnswers(OPENING_LIMIT_MS);
  app.kill("SIGTERM");
  await stopping(app);
  for (const answer of model.answers) {
    answer.write(eventOf({ content: ", continued" }));
  }
  await eventually(() => expect(model.answers.every((answer) => answer.writableLength === 0)).toBe(true));
  for (const answer of model.answers) {
    answer.end(`${eventOf({ content: ", ended" }, "stop")}data: [DONE]\n\n`);
  }
  const texts = await Promise.all(ended);
  const lastEndMs = performance.now();
  expect(texts.filter(({ text }) => text.includes("[DONE]"))).toHaveLength(STREAMS);
  expect(await app.exited).toBe(0);
  expect(performance.now() - lastEndMs).toBeLessThan(SHUTDOWN_TIMEOUT_MS + GRACE_MS);
  await acknowledgedAs("begun, continued, ended", texts);
});

test("500 endless answers are cut at the drain limit, not before, and acknowledged", async () => {
  const drainMs = 3000;
  const { model, app, ended } = await openAnswers(drainMs);
  const termAtMs = performance.now();
  app.kill("SIGTERM");
  await stopping(app);
  for (const answer of model.answers) {
    answer.write(eventOf({ content: ", continued" }));
  }
  const texts = await Promise.all(ended);
  expect(await app.exited).toBe(0);
  expect(performance.now() - termAtMs).toBeLessThan(drainMs + SHUTDOWN_TIMEOUT_MS + GRACE_MS);
  expect(texts.filter(({ text }) => text === "cut")).toHaveLength(STREAMS);
  expect(Math.min(...texts.map(({ atMs }) => atMs)) - termAtMs).toBeGreaterThanOrEqual(drainMs);
  await acknowledgedAs("begun, continued", texts);
});

test("the last answer is acknowledged by the process that stops, if its model's server is lost meanwhile", async () => {
  const { model, app, ended } = await openAnswers(OPENING_LIMIT_MS, 1);
  app.kill("SIGTERM");
  await stopping(app);
  model.answers[0]?.destroy();
  expect((await Promise.all(ended)).map(({ text }) => text)).toEqual(["cut"]);
  expect(await app.exited).toBe(0);
  // A worker would settle the turn after 20 s, and without its text.
  await acknowledgedAs("begun", await Promise.all(ended));
});
