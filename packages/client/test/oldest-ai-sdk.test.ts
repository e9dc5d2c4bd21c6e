/** The middleware with the first version of the AI SDK that the package says it takes. */
import { generateText, stepCountIs, streamText, tool, wrapLanguageModel } from "ai-oldest";
import { createOpenAI } from "ai-sdk-openai-oldest";
import { expect, test } from "vitest";
import { z } from "zod";
import { adMiddleware } from "../src/ai-sdk/index.ts";
import { type Chat, CONTEXT, PROMPT_WITH_AD, useChat } from "./chat-fixture.ts";

// The AI SDK prints hints about models that it doesn't know.
globalThis.AI_SDK_LOG_WARNINGS = false;

const setup = useChat();
const TEXTS = ["One ", "two ", "three."];
const prompt = "Which running shoes?";

type Middleware = Parameters<typeof wrapLanguageModel>[0]["middleware"];

function wrap({ relay, server }: Chat) {
  // A program with this version has its types in place of the newest ones.
  const middleware = adMiddleware({ relay, context: () => CONTEXT }) as unknown as Middleware;
  const provider = createOpenAI({ baseURL: server.url, apiKey: "k" });
  return wrapLanguageModel({ model: provider.chat("m"), middleware });
}

test("an answer of the oldest AI SDK is acknowledged once, streamed or not", async () => {
  const chat = await setup();
  expect((await generateText({ model: wrap(chat), prompt })).text).toBe(TEXTS.join(""));
  expect(await streamText({ model: wrap(chat), prompt }).text).toBe(TEXTS.join(""));
  expect(await chat.acknowledgedTexts()).toEqual([TEXTS.join(""), TEXTS.join("")]);
});

test("a tool loop of the oldest AI SDK has one ad and one acknowledgment", async () => {
  const chat = await setup();
  chat.server.onCall((_call, count) =>
    count === 0
      ? { texts: ["Step 0. "], toolCalls: [{ id: "c-1", name: "search", input: '{"q":"shoes"}' }] }
      : { texts: TEXTS },
  );
  const search = tool({
    description: "Searches.",
    inputSchema: z.object({ q: z.string() }),
    execute: async ({ q }) => `found ${q}`,
  });
  const options = { model: wrap(chat), tools: { search }, stopWhen: stepCountIs(3), prompt };
  expect(await streamText(options).text).toBe(TEXTS.join(""));
  expect(await chat.acknowledgedTexts()).toEqual([`Step 0. \n\n${TEXTS.join("")}`]);
  const asked = chat.server.calls.map(({ body }) => JSON.stringify(body["messages"]));
  expect(asked.map((messages) => messages.includes(PROMPT_WITH_AD))).toEqual([true, true]);
});
