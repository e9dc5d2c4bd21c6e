/** Proxies that are killed, or that stand still for longer than a lease, in the middle of an answer. */
import { startTestRedis } from "@adrelay/dev-servers";
import {
  eventually,
  fetchMetrics,
  filled,
  startApp,
  startScriptedProvider,
  sumOf,
  TEST_API_KEY,
  TEST_PROVIDER_KEY,
} from "@adrelay/testkit";
import { afterAll, expect, test } from "vitest";
import { bodyOf, CHAT, chatStream, startModel } from "./http-fixture.ts";

/** A lease, and as long again until the worker knows that Redis has answered without a break. */
const SETTLED_WITHIN_MS = 100_000;
const EVERY_MS = 50;
/** Two batches of 250 ms, and what a busy machine adds. */
const LOST_MAX_MS = 1500;

const [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
const model = await startModel(async (request, response) => {
  await bodyOf(request);
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  let part = 0;
  const timer = setInterval(() => {
    response.write(chatStream([`${part} `])[0]);
    part += 1;
  }, EVERY_MS);
  response.once("close", () => clearInterval(timer));
});
const common = {
  REDIS_URL: redis.url,
  PROVIDER_URL: provider.url,
  PROVIDER_API_KEY: TEST_PROVIDER_KEY,
  API_KEYS: TEST_API_KEY,
};
const worker = await startApp("worker", { ...common, WORKER_OPS_PORT: "0", SWEEP_INTERVAL_MS: "500" });
provider.onStart(() => filled());

afterAll(async () => {
  await worker.stop();
  await Promise.all([model.stop(), provider.close()]);
  await redis.dispose();
});

/** A proxy with an answer that runs, and what the caller has read of it. */
async function startAnswer() {
  const app = await startApp("proxy", {
    ...common,
    PROXY_PORT: "0",
    PROXY_OPS_PORT: "0",
    OPENAI_BASE_URL: `${model.url}/v1`,
    PROXY_DRAIN_MS: "0",
    PROXY_INJECTION_TIMEOUT_MS: "5000",
    SHUTDOWN_TIMEOUT_MS: "2000",
  });
  const caller = new AbortController();
  const answer = await fetch(`http://127.0.0.1:${app.listening["port"]}/v1/chat/completions`, {
    method: "POST",
    signal: caller.signal,
    headers: {
      "X-Service-API-Key": TEST_API_KEY,
      authorization: "Bearer model-key",
      "content-type": "application/json",
      "X-Adrelay-Session-Id": "s1",
      "X-Adrelay-User-Agent": "agent",
      "X-Adrelay-User-IP": "203.0.113.7",
    },
    body: CHAT,
  });
  const read = { text: "" };
  const reading = (async () => {
    for await (const chunk of answer.body ?? []) {
      for (const [, part] of Buffer.from(chunk)
        .toString("utf8")
        .matchAll(/"content":"(\d+ )"/g)) {
        read.text += part;
      }
    }
  })().catch(() => {});
  await eventually(() => expect(read.text.length).toBeGreaterThan(100));
  const id = answer.headers.get("x-adrelay-ad-response-id") ?? "";
  return { app, read, reading, id, hangUp: () => caller.abort() };
}

test("their answers are acknowledged once with what the journal has", { timeout: 150_000 }, async () => {
  const [killed, stopped] = await Promise.all([startAnswer(), startAnswer()]);
  killed.app.kill("SIGKILL");
  stopped.app.kill("SIGSTOP");
  await killed.reading;
  for (const { id, read } of [killed, stopped]) {
    await eventually(() => expect(provider.acknowledgmentsOf(id)).toHaveLength(1), SETTLED_WITHIN_MS);
    const text = String(provider.acknowledgmentsOf(id)[0]?.fields["llm_response"]);
    expect(read.text.startsWith(text)).toBe(true);
    const lostParts = read.text.split(" ").length - text.split(" ").length;
    expect(lostParts * EVERY_MS).toBeLessThan(LOST_MAX_MS);
  }
  const before = stopped.read.text.length;
  stopped.app.kill("SIGCONT");
  await eventually(() => expect(stopped.read.text.length).toBeGreaterThan(before + 100));
  stopped.hangUp();
  const opsUrl = `http://127.0.0.1:${stopped.app.listening["ops_port"]}`;
  await eventually(async () =>
    expect(sumOf(await fetchMetrics(opsUrl), "adrelay_turns_late_text_total")).toBe(1),
  );
  expect(await stopped.app.stop()).toBe(0);
  expect(provider.acknowledgmentsOf(stopped.id)).toHaveLength(1);
});
