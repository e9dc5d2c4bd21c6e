/** A proxy that is stopped while Redis is away. No scrape sees what its counters say then, so its log must say it. */
import type { ServerResponse } from "node:http";
import { startTestRedis } from "@adrelay/dev-servers";
import {
  eventually,
  filled,
  startApp,
  startScriptedProvider,
  startSocketProxy,
  TEST_API_KEY,
  TEST_PROVIDER_KEY,
} from "@adrelay/testkit";
import { afterAll, expect, test } from "vitest";
import { bodyOf, CHAT, chatStream, startModel, write } from "./http-fixture.ts";

const ANSWERS = 20;
const EVENTS = chatStream(["Try ", "Fizz."]);

const [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
/** Between the proxy and Redis. */
const way = await startSocketProxy(redis.port);
const running: ServerResponse[] = [];
const model = await startModel(async (request, response) => {
  await bodyOf(request);
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  await write(response, EVENTS[0] ?? "");
  running.push(response);
});
provider.onStart(() => filled());
const proxy = await startApp("proxy", {
  REDIS_URL: redis.url.replace(String(redis.port), String(way.port)),
  PROVIDER_URL: provider.url,
  PROVIDER_API_KEY: TEST_PROVIDER_KEY,
  API_KEYS: TEST_API_KEY,
  PROXY_PORT: "0",
  PROXY_OPS_PORT: "0",
  OPENAI_BASE_URL: `${model.url}/v1`,
  PROXY_DRAIN_MS: "0",
  PROXY_INJECTION_TIMEOUT_MS: "10000",
  SHUTDOWN_TIMEOUT_MS: "3000",
});

afterAll(async () => {
  await proxy.stop();
  await Promise.all([model.stop(), way.close(), provider.close()]);
  await redis.dispose();
});

async function call() {
  const answer = await fetch(`http://127.0.0.1:${proxy.listening["port"]}/v1/chat/completions`, {
    method: "POST",
    headers: {
      "X-Service-API-Key": TEST_API_KEY,
      "X-Adrelay-Session-Id": crypto.randomUUID(),
      "X-Adrelay-User-Agent": "agent",
      "X-Adrelay-User-IP": "203.0.113.7",
    },
    body: CHAT,
  });
  return { hasAd: answer.headers.get("X-Adrelay-Ad") === "injected", text: answer.text() };
}

test("its log lines count every turn whose text is lost, also those of the last second", async () => {
  const answers = await Promise.all(Array.from({ length: ANSWERS }, call));
  await eventually(() => expect(running).toHaveLength(ANSWERS));
  way.setTarget(1);
  way.cut();
  for (const response of running) {
    response.end(EVENTS.slice(1).join(""));
  }
  for (const { text } of answers) {
    expect(await text).toBe(EVENTS.join(""));
  }
  proxy.kill("SIGTERM");
  expect(await proxy.exited).toBe(0);
  const lines = proxy.logs.filter(({ event }) => event === "turn_text_lost");
  // On a loaded machine a few calls may get no ad.
  const withAd = answers.filter(({ hasAd }) => hasAd).length;
  expect(withAd).toBeGreaterThan(1);
  expect(lines.reduce((sum, { count }) => sum + Number(count), 0)).toBe(withAd);
});
