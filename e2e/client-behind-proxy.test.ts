/** Backends that use our own client, and call their model through the proxy: the proxy adds no second ad. */
import { randomUUID } from "node:crypto";
import { createRelay } from "@adrelay/client";
import { adMiddleware } from "@adrelay/client/ai-sdk";
import { withAd as messageWithAd } from "@adrelay/client/anthropic";
import { withAd as chatWithAd } from "@adrelay/client/openai";
import { TEST_API_KEY } from "@adrelay/testkit";
import { createOpenAI } from "@ai-sdk/openai";
import { Anthropic } from "@anthropic-ai/sdk";
import { generateText, isStepCount, tool, wrapLanguageModel } from "ai";
import { OpenAI } from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { headersOf, type ProxyStack, startProxyStack } from "./model-proxy/proxy-stack.ts";

const QUESTION = "Say so first, then use the tool: which running shoes should I buy?";
const MESSAGES = [{ role: "user" as const, content: QUESTION }];

let stack: ProxyStack;

beforeAll(async () => {
  stack = await startProxyStack({ proxies: 1 });
});
afterAll(() => stack.stop());

/** The headers would be enough for an ad of the proxy's. */
function setup() {
  const session = randomUUID();
  const relay = createRelay({ url: stack.relay.gatewayUrl, apiKey: TEST_API_KEY, timeoutMs: 10_000 });
  const context = {
    request_context: { session_id: session, user_agent: "Mozilla/5.0", user_ip: "203.0.113.7" },
  };
  const defaultHeaders = { ...headersOf(session), "X-Run": session };
  const options = { apiKey: "k", maxRetries: 0, defaultHeaders };
  return { session, relay, context, options, url: String(stack.proxyUrls[0]) };
}

/** The session was sold one ad, which each of the calls of the model had once. Its text was acknowledged once. */
async function expectOneAd(session: string, calls: number, text: string): Promise<void> {
  expect(stack.adCallsOf(session)).toHaveLength(1);
  const [id = ""] = stack.adIds.filter((adId) => stack.sessionOf(adId) === session);
  expect(await stack.acknowledgedText(id)).toBe(text);
  const bodies = (await stack.model.calls()).filter(({ headers }) => headers["x-run"] === session);
  expect(bodies).toHaveLength(calls);
  for (const { body, headers } of bodies) {
    expect(body.toString("utf8").split("<product>")).toHaveLength(2);
    expect(Object.keys(headers).filter((name) => name.startsWith("x-adrelay"))).toEqual([]);
  }
}

test("the AI SDK's middleware has the only ad of a tool loop", async () => {
  const { session, relay, context, options, url } = setup();
  const provider = createOpenAI({ baseURL: `${url}/v1`, apiKey: "k", headers: options.defaultHeaders });
  const middleware = adMiddleware({ relay, context: () => context });
  const weather = tool({ inputSchema: z.object({ city: z.string() }), execute: async () => "sunny" });
  const { steps } = await generateText({
    model: wrapLanguageModel({ model: provider("m"), middleware }),
    tools: { weather },
    stopWhen: isStepCount(3),
    prompt: QUESTION,
  });
  expect(await relay.close()).toBe(0);
  expect(steps).toHaveLength(2);
  const marks = steps.map(({ response }) => response.headers?.["x-adrelay-ad"]);
  expect(marks).toEqual(Array(2).fill("skipped; reason=off"));
  await expectOneAd(session, 2, steps.map(({ text }) => text).join("\n\n"));
});

test("the helper for OpenAI's client has the only ad", async () => {
  const { session, relay, context, options, url } = setup();
  const client = new OpenAI({ ...options, baseURL: `${url}/v1` });
  const request = { model: "m", messages: MESSAGES };
  const { choices } = await chatWithAd(relay, client.chat.completions, request, context);
  expect(await relay.close()).toBe(0);
  await expectOneAd(session, 1, String(choices[0]?.message.content));
});

test("the helper for Anthropic's client has the only ad", async () => {
  const { session, relay, context, options, url } = setup();
  const client = new Anthropic({ ...options, baseURL: url });
  const request = { model: "m", max_tokens: 1000, messages: MESSAGES };
  const { content } = await messageWithAd(relay, client.messages, request, context);
  expect(await relay.close()).toBe(0);
  const texts = content.map((block) => (block.type === "text" ? block.text : ""));
  await expectOneAd(session, 1, texts.join(""));
});
