/** The middleware with the real AI SDK and its providers, a model's server on a socket, and a real relay. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startTestRedis } from "@adrelay/dev-servers";
import { codeBlocks, eventually, startAdServer, startRelayStack, TEST_API_KEY } from "@adrelay/testkit";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, isStepCount, type LanguageModel, streamText, tool, wrapLanguageModel } from "ai";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { type AdMiddlewareOptions, adMiddleware } from "../src/ai-sdk/index.ts";
import { createRelay } from "../src/index.ts";
import { type Chat, CONTEXT, PROMPT_WITH_AD, useChat } from "./chat-fixture.ts";
import type { Answer, ModelCall, ModelServer } from "./model-server.ts";

// The AI SDK prints hints about models that it doesn't know.
globalThis.AI_SDK_LOG_WARNINGS = false;

const setup = useChat();
const TEXTS = ["One ", "two ", "three."];
const QUESTION = "Which running shoes?";

const openAi = ({ url }: ModelServer) => createOpenAI({ baseURL: url, apiKey: "k" }).chat("m");
const claude = ({ url }: ModelServer) => createAnthropic({ baseURL: url, apiKey: "k" })("m");
const PROVIDERS = [
  ["OpenAI", openAi],
  ["Anthropic", claude],
] as const;

function wrap({ relay, server }: Chat, provider = openAi, options: Partial<AdMiddlewareOptions> = {}) {
  const middleware = adMiddleware({ relay, context: () => CONTEXT, ...options });
  return wrapLanguageModel({ model: provider(server), middleware });
}

const search = tool({
  description: "Searches.",
  inputSchema: z.object({ q: z.string() }),
  execute: async ({ q }) => `found ${q}`,
});
const call = (q: string, id = "search:0") => ({ id, name: "search", input: JSON.stringify({ q }) });
const loop = { tools: { search }, stopWhen: isStepCount(9) };

/** How many results of tools a call returns. */
function resultCount({ body }: ModelCall): number {
  return JSON.stringify(body["messages"]).split(/"role":"tool"|"type":"tool_result"/).length - 1;
}

/** Three steps: two with a text and a call, one with the final text. Ids of calls repeat. */
const threeSteps = (seen: ModelCall): Answer => {
  const at = resultCount(seen);
  return at < 2 ? { texts: [`Step ${at}. `], toolCalls: [call(String(at))] } : { texts: TEXTS };
};

/** The texts of the users' messages that the model was sent in each call. */
const sentTexts = ({ calls }: ModelServer) =>
  calls.map(({ body }) => {
    const messages: { role: string; content: unknown }[] = Object(body["messages"]);
    return messages.filter(({ role }) => role === "user").flatMap(({ content }) => userTexts(content));
  });

function userTexts(content: unknown): string[] {
  const parts: { type: string; text: string }[] = Array.isArray(content)
    ? content
    : [{ type: "text", text: content }];
  return parts.filter(({ type }) => type === "text").map(({ text }) => text);
}

async function streamed(model: LanguageModel, options: Partial<Parameters<typeof streamText>[0]> = {}) {
  let text = "";
  const result = streamText({ model, ...loop, ...(options as object), prompt: QUESTION, onError: () => {} });
  for await (const chunk of result.textStream) {
    text += chunk;
  }
  return text;
}

test.each(PROVIDERS)("an answer of %s is acknowledged once, streamed or not", async (_name, provider) => {
  const chat = await setup();
  const model = wrap(chat, provider);
  expect((await generateText({ model, prompt: QUESTION })).text).toBe(TEXTS.join(""));
  expect(await streamed(model)).toBe(TEXTS.join(""));
  expect(await chat.acknowledgedTexts()).toEqual([TEXTS.join(""), TEXTS.join("")]);
  expect(sentTexts(chat.server)).toEqual([[PROMPT_WITH_AD], [PROMPT_WITH_AD]]);
  expect(chat.server.calls.map(({ headers }) => headers["x-adrelay-ad"])).toEqual(["off", "off"]);
});

test.each(PROVIDERS)(
  "a loop of three tool steps of %s has one ad and one acknowledgment",
  async (_name, provider) => {
    const chat = await setup();
    chat.server.onCall(threeSteps);
    const model = wrap(chat, provider);
    const text = "Step 0. \n\nStep 1. \n\nOne two three.";
    await streamed(model);
    expect(await chat.acknowledgedTexts()).toEqual([text]);
    const result = await generateText({ model, ...loop, prompt: QUESTION });
    expect(result.steps).toHaveLength(3);
    expect(await chat.acknowledgedTexts()).toEqual([text, text]);
    expect(sentTexts(chat.server)).toEqual(Array.from({ length: 6 }, () => [PROMPT_WITH_AD]));
  },
);

test("turns at once with the same text and the same call ids aren't mixed", async () => {
  const chat = await setup();
  const seeds = Array.from({ length: 20 }, (_value, at) => `user ${at}`);
  chat.server.onCall(({ headers, body }) => {
    const user = String(headers["x-user"]);
    const at = resultCount({ headers, body, path: "" });
    return at < 2 ? { texts: [`${user} ${at} `], toolCalls: [call("q")] } : { texts: [user] };
  });
  const model = wrap(chat);
  await Promise.all(seeds.map((user) => streamed(model, { headers: { "x-user": user } })));
  const texts = await chat.acknowledgedTexts();
  expect(texts.toSorted()).toEqual(seeds.map((user) => `${user} 0 \n\n${user} 1 \n\n${user}`).toSorted());
});

/** The parts of one call of the model, read below the AI SDK's own buffers. */
async function openParts(chat: Chat, provider: typeof openAi | typeof claude, abortSignal?: AbortSignal) {
  const prompt = [{ role: "user" as const, content: [{ type: "text" as const, text: QUESTION }] }];
  const model = wrap(chat, provider as typeof openAi);
  const { stream } = await model.doStream({ prompt, ...(abortSignal && { abortSignal }) });
  return stream.getReader();
}

type Leave = (controller: AbortController, reader: Awaited<ReturnType<typeof openParts>>) => unknown;
const LEAVES: (readonly [string, Leave])[] = [
  ["abort", (controller) => controller.abort()],
  ["cancel", (_controller, reader) => reader.cancel()],
];
const WAYS = LEAVES.flatMap(([way, leave]) =>
  PROVIDERS.map(([name, provider]) => [way, name, provider, leave] as const),
);

test.each(WAYS)(
  "%s after each event of %s acknowledges what was consumed",
  async (_way, _name, provider, leave) => {
    const chat = await setup();
    const shown: string[] = [];
    for (let count = 0, isDone = false; !isDone; count += 1) {
      const controller = new AbortController();
      const reader = await openParts(chat, provider, controller.signal);
      let text = "";
      for (let seen = 0; seen < count && !isDone; seen += 1) {
        const { done, value } = await reader.read();
        isDone = done;
        text += value?.type === "text-delta" ? value.delta : "";
      }
      await leave(controller, reader);
      shown.push(text);
    }
    expect(shown.length).toBeGreaterThan(6);
    expect(shown.at(-1)).toBe(TEXTS.join(""));
    expect(await chat.acknowledgedTexts()).toEqual(shown);
  },
);

test.each(PROVIDERS)("a stream of %s that breaks acknowledges what was consumed", async (_name, provider) => {
  const chat = await setup();
  const shown: string[] = [];
  for (const breakAfter of [3, 4, 7]) {
    chat.server.onCall(() => ({ texts: TEXTS, breakAfter }));
    let text = "";
    const reader = await openParts(chat, provider);
    const reading = (async () => {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) {
          return;
        }
        text += value.type === "text-delta" ? value.delta : "";
      }
    })();
    await reading.catch(() => {});
    shown.push(text);
  }
  expect(shown.join("")).toContain("One ");
  expect(await chat.acknowledgedTexts()).toEqual(shown);
});

test("an abort of the AI SDK's own stream acknowledges no less than its consumer has", async () => {
  const chat = await setup();
  const controller = new AbortController();
  const result = streamText({ model: wrap(chat), prompt: QUESTION, abortSignal: controller.signal });
  let text = "";
  for await (const chunk of result.textStream) {
    text += chunk;
    controller.abort();
  }
  const [acknowledged] = await chat.acknowledgedTexts();
  expect(TEXTS.join("").startsWith(String(acknowledged))).toBe(true);
  expect(String(acknowledged).startsWith(text)).toBe(true);
});

test("an abort while a tool runs acknowledges the text before it", async () => {
  const chat = await setup();
  chat.server.onCall(threeSteps);
  const controller = new AbortController();
  const slow = { ...search, execute: async () => controller.abort() };
  const text = streamed(wrap(chat), { tools: { search: slow }, abortSignal: controller.signal });
  await text.catch(() => {});
  expect(await chat.acknowledgedTexts()).toEqual(["Step 0. "]);
});

test("a call that the AI SDK repeats keeps its ad", async () => {
  const chat = await setup();
  chat.server.onCall((_seen, count) => (count === 0 ? { status: 500 } : { texts: TEXTS }));
  expect(await streamed(wrap(chat))).toBe(TEXTS.join(""));
  expect(sentTexts(chat.server)).toEqual([[PROMPT_WITH_AD], [PROMPT_WITH_AD]]);
  expect(await chat.acknowledgedTexts()).toEqual([TEXTS.join("")]);
});

/** How many events it takes until the first text is out. */
const UNTIL_TEXT = { OpenAI: 2, Anthropic: 6 } as const;

test.each(PROVIDERS)(
  "an answer of %s that fails midway and is repeated keeps its ad",
  async (name, provider) => {
    const chat = await setup();
    chat.server.onCall((_seen, count) => ({
      texts: TEXTS,
      ...(count === 0 && { failAfter: UNTIL_TEXT[name] }),
    }));
    const text = await streamed(wrap(chat, provider), { streamRetries: 1 });
    expect(text).toMatch(/^One .*One two three\.$/);
    expect(sentTexts(chat.server)).toEqual([[PROMPT_WITH_AD], [PROMPT_WITH_AD]]);
    expect(chat.events.filter(({ kind }) => kind === "injected")).toHaveLength(1);
    expect(await chat.acknowledgedTexts()).toEqual([expect.stringMatching(/^One .*\n\nOne two three\.$/)]);
  },
);

test("a second tool step that fails midway and is repeated stays in its turn", async () => {
  const chat = await setup();
  chat.server.onCall((seen) => ({
    ...threeSteps(seen),
    ...(chat.server.calls.length === 2 && { failAfter: UNTIL_TEXT.OpenAI }),
  }));
  await streamed(wrap(chat), { streamRetries: 1 });
  expect(sentTexts(chat.server)).toEqual(Array.from({ length: 4 }, () => [PROMPT_WITH_AD]));
  expect(await chat.acknowledgedTexts()).toEqual(["Step 0. \n\nStep 1. \n\nStep 1. \n\nOne two three."]);
});

test("an answer that fails midway and isn't repeated is acknowledged soon", async () => {
  const chat = await setup();
  chat.server.onCall(() => ({ texts: TEXTS, failAfter: UNTIL_TEXT.OpenAI }));
  const text = await streamed(wrap(chat));
  await eventually(() => expect(chat.events.map(({ kind }) => kind)).toContain("accepted"), 10_000);
  expect(await chat.acknowledgedTexts()).toEqual([text]);
});

test("a model that refuses the prompt with the ad gets the user's own", async () => {
  const chat = await setup();
  chat.server.onCall((_seen, count) => (count === 0 ? { status: 400 } : { texts: TEXTS }));
  expect(await streamed(wrap(chat))).toBe(TEXTS.join(""));
  expect(sentTexts(chat.server)).toEqual([[PROMPT_WITH_AD], [QUESTION]]);
  expect(await chat.acknowledgedTexts()).toEqual([TEXTS.join("")]);
});

test("a turn that never returns is acknowledged after its wait, at close, and if too many wait", async () => {
  const chat = await setup();
  chat.server.onCall(() => ({ texts: ["Let me look."], toolCalls: [call("q")] }));
  const once = { tools: { search }, stopWhen: isStepCount(1), prompt: QUESTION };
  await generateText({ model: wrap(chat, openAi, { turnWaitMs: 50 }), ...once });
  expect(await chat.acknowledgedTexts()).toEqual(["Let me look."]);
  const crowded = wrap(chat, openAi, { waitingMax: 1 });
  await generateText({ model: crowded, ...once });
  await generateText({ model: crowded, ...once });
  await eventually(() => expect(chat.events.filter(({ kind }) => kind === "accepted")).toHaveLength(2));
  expect(await chat.relay.close()).toBe(0);
  expect(await chat.acknowledgedTexts()).toEqual(["Let me look.", "Let me look.", "Let me look."]);
});

test("close waits for an answer in one piece, which the user gets whole", async () => {
  const chat = await setup();
  let closing: Promise<number> | undefined;
  chat.server.onCall(() => {
    closing = chat.relay.close();
    return { texts: TEXTS };
  });
  await generateText({ model: wrap(chat), prompt: QUESTION });
  expect(await closing).toBe(0);
  expect(await chat.acknowledgedTexts()).toEqual([TEXTS.join("")]);
});

test("a step whose tool call isn't of a waiting turn gets no ad", async () => {
  const chat = await setup();
  const skipped: string[] = [];
  chat.server.onCall(threeSteps);
  const first = await generateText({ model: wrap(chat), tools: { search }, prompt: QUESTION });
  const model = wrap(chat, openAi, { onSkip: (reason) => skipped.push(reason) });
  const messages = [{ role: "user" as const, content: QUESTION }, ...first.responseMessages];
  await generateText({ model, tools: { search }, messages });
  expect(skipped).toEqual(["unknown_step"]);
  expect(sentTexts(chat.server)).toEqual([[PROMPT_WITH_AD], [QUESTION]]);
  await chat.relay.close();
  expect(await chat.acknowledgedTexts()).toEqual(["Step 0. "]);
});

test("calls that may have no ad reach the model with their own text", async () => {
  const chat = await setup();
  const skipped: string[] = [];
  const failing = () => Promise.reject(new TypeError("no session"));
  const options = { onSkip: (reason: string) => skipped.push(reason) };
  const model = wrap(chat, openAi, options);
  const user = { role: "user" as const, content: QUESTION };
  const cached = { ...user, providerOptions: { anthropic: { cacheControl: { type: "ephemeral" } } } };
  const kept = { openai: { previousResponseId: "r-1" } };
  const text = { type: "text" as const, text: QUESTION };
  const prompt = [{ role: "user" as const, content: [text] }];
  await generateText({ model: wrap(chat, openAi, { ...options, context: failing }), prompt: QUESTION });
  await generateText({ model, prompt: QUESTION, providerOptions: { adrelay: {} } });
  await generateText({ model, prompt: "  " });
  await model.doGenerate({ prompt: [{ role: "user", content: [text, text] }] });
  await model.doGenerate({ prompt, responseFormat: { type: "json" } });
  await model.doGenerate({ prompt, toolChoice: { type: "required" } });
  await generateText({ model, messages: [user, { role: "assistant", content: "I would" }] });
  await generateText({ model, messages: [cached] });
  await generateText({ model, prompt: QUESTION, providerOptions: kept });
  expect(skipped).toEqual([
    "no_context",
    "no_context",
    "no_user_text",
    "no_user_text",
    "structured_output",
    "forced_tool",
    "prefill",
    "cache_marked",
    "provider_state",
  ]);
  expect(new Set(sentTexts(chat.server).flat())).toEqual(new Set([QUESTION, "  "]));
  expect(chat.events).toEqual([]);
});

test("a call's own context goes to the relay and not to the model", async () => {
  const chat = await setup();
  const context = { request_context: { session_id: "of the call" } };
  const model = wrap(chat, openAi, { context: () => undefined });
  await generateText({ model, prompt: QUESTION, providerOptions: { adrelay: context } });
  expect(await chat.acknowledgedTexts()).toEqual([TEXTS.join("")]);
  expect(JSON.stringify(chat.server.calls)).not.toContain("of the call");
});

/** The examples of the guide, as programs of their own. */
const EXAMPLES = codeBlocks("docs/client.md", "js").filter((code) =>
  /client\/(ai-sdk|openai|anthropic)"/.test(code),
);

test("the guide's examples for SDKs print the answer and acknowledge it", async () => {
  const chat = await setup();
  const env = {
    PATH: process.env["PATH"],
    RELAY_URL: chat.relayUrl,
    RELAY_KEY: TEST_API_KEY,
    OPENAI_API_KEY: "k",
    OPENAI_BASE_URL: chat.server.url,
    ANTHROPIC_API_KEY: "k",
    ANTHROPIC_BASE_URL: chat.server.url.replace("/v1", ""),
  };
  const cwd = fileURLToPath(new URL("../", import.meta.url));
  const flags = ["--disable-warning=ExperimentalWarning", "--input-type=module", "--eval"];
  for (const code of EXAMPLES) {
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, code], { cwd, env });
    expect(stdout).toContain(TEXTS.join(""));
    expect([...stdout.matchAll(/kind: '(\w+)'/g)].map(([, kind]) => kind)).toEqual(["injected", "accepted"]);
  }
  expect(EXAMPLES).toHaveLength(3);
  expect(JSON.stringify(chat.server.calls)).not.toContain("marathon");
});

test("the real ad server sells an ad to a tool loop and records one acknowledgment", async () => {
  const { server } = await setup();
  server.onCall(threeSteps);
  const redis = await startTestRedis();
  onTestFinished(() => redis.dispose());
  const adServer = await startAdServer(redis);
  onTestFinished(() => adServer.stop());
  const stack = await startRelayStack({ redis, providerUrl: adServer.url });
  onTestFinished(() => stack.stop());
  const ids: string[] = [];
  const relay = createRelay({
    url: stack.gatewayUrl,
    apiKey: TEST_API_KEY,
    timeoutMs: 10_000,
    onEvent: (event) => (event.kind === "injected" ? ids.push(event.adResponseId) : 0),
  });
  const model = wrapLanguageModel({
    model: openAi(server),
    middleware: adMiddleware({ relay, context: () => CONTEXT }),
  });
  const prompt = "Which running shoes should I buy for my first marathon?";
  const { text } = await generateText({ model, ...loop, prompt });
  expect(text).toBe(TEXTS.join(""));
  expect(await relay.close()).toBe(0);
  expect(ids).toHaveLength(1);
  await eventually(async () => {
    expect(await adServer.acknowledgmentOf(ids[0] ?? "")).toEqual({ acknowledged: true, posts: 1 });
  });
  const sent = sentTexts(server).flat();
  expect(new Set(sent).size).toBe(1);
  expect(sent[0]).toContain(prompt);
  expect(sent[0]).not.toBe(prompt);
});
