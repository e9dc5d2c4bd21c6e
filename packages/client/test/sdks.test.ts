/** The helpers for the openai and Anthropic SDKs: the real SDKs, a model's server on a socket, a real relay. */
import { Anthropic } from "@anthropic-ai/sdk";
import { Anthropic as OldestAnthropic } from "anthropic-oldest";
import { OpenAI } from "openai";
import { OpenAI as OldestOpenAI } from "openai-oldest";
import { expect, test } from "vitest";
import { withAd as withAnthropicAd } from "../src/sdks/anthropic.ts";
import { withAd as withOpenAiAd } from "../src/sdks/openai.ts";
import { type Chat, CONTEXT, PROMPT_WITH_AD, useChat } from "./chat-fixture.ts";

const setup = useChat();
const TEXTS = ["One ", "two ", "three."];
const QUESTION = "Which running shoes?";
const messages = [{ role: "user" as const, content: QUESTION }];

interface Options {
  readonly signal?: AbortSignal;
}

/** One API of one SDK: how to ask it, and the texts of what it streams. */
interface Api {
  whole(chat: Chat): Promise<string | null | undefined>;
  stream(chat: Chat, options?: Options): AsyncIterable<string>;
  /** What the model was sent in place of the user's text. */
  sent(chat: Chat, at?: number): unknown;
}

interface Sdks {
  readonly OpenAI: typeof OpenAI;
  readonly Anthropic: typeof Anthropic;
}
const NEWEST: Sdks = { OpenAI, Anthropic };
/** The first versions that the package says it takes. A program with them has their types in place of the newest ones. */
const OLDEST = { OpenAI: OldestOpenAI, Anthropic: OldestAnthropic } as unknown as Sdks;

const openAi = ({ server }: Chat, { OpenAI: Sdk } = NEWEST) =>
  new Sdk({ baseURL: server.url, apiKey: "k", maxRetries: 0 });
const anthropic = ({ server }: Chat, { Anthropic: Sdk }: Sdks) =>
  new Sdk({ baseURL: server.url.replace("/v1", ""), apiKey: "k", maxRetries: 0 });
const sentMessage = ({ server }: Chat, at = 0) => Object(server.calls[at]?.body["messages"])[0].content;

const completions = (sdks: Sdks): Api => ({
  whole: async (chat) => {
    const request = { model: "m", messages };
    const answer = await withOpenAiAd(chat.relay, openAi(chat, sdks).chat.completions, request, CONTEXT);
    return answer.choices[0]?.message.content;
  },
  async *stream(chat, options) {
    const request = { model: "m", messages, stream: true as const };
    for await (const { choices } of await withOpenAiAd(
      chat.relay,
      openAi(chat, sdks).chat.completions,
      request,
      CONTEXT,
      options,
    )) {
      yield choices[0]?.delta.content ?? "";
    }
  },
  sent: sentMessage,
});

const responses = (sdks: Sdks): Api => ({
  whole: async (chat) => {
    const request = { model: "m", input: QUESTION };
    return (await withOpenAiAd(chat.relay, openAi(chat, sdks).responses, request, CONTEXT)).output_text;
  },
  async *stream(chat, options) {
    const request = { model: "m", input: QUESTION, stream: true as const };
    const events = await withOpenAiAd(chat.relay, openAi(chat, sdks).responses, request, CONTEXT, options);
    for await (const event of events) {
      yield event.type === "response.output_text.delta" ? event.delta : "";
    }
  },
  sent: ({ server }, at = 0) => server.calls[at]?.body["input"],
});

const claude = (sdks: Sdks): Api => ({
  whole: async (chat) => {
    const request = { model: "m", max_tokens: 9, messages };
    const { content } = await withAnthropicAd(chat.relay, anthropic(chat, sdks).messages, request, CONTEXT);
    return content.map((part) => (part.type === "text" ? part.text : "")).join("");
  },
  async *stream(chat, options) {
    const request = { model: "m", max_tokens: 9, messages, stream: true as const };
    const events = await withAnthropicAd(
      chat.relay,
      anthropic(chat, sdks).messages,
      request,
      CONTEXT,
      options,
    );
    for await (const event of events) {
      yield event.type === "content_block_delta" && event.delta.type === "text_delta" ? event.delta.text : "";
    }
  },
  sent: sentMessage,
});

const APIS = [
  ["chat completions", completions(NEWEST)],
  ["responses", responses(NEWEST)],
  ["Anthropic messages", claude(NEWEST)],
  ["the oldest chat completions", completions(OLDEST)],
  ["the oldest responses", responses(OLDEST)],
  ["the oldest Anthropic messages", claude(OLDEST)],
] as const;

/** Reads up to so many chunks. */
async function read(stream: AsyncIterable<string>, count = Number.POSITIVE_INFINITY, onLast = () => {}) {
  let text = "";
  let seen = 0;
  for await (const chunk of stream) {
    text += chunk;
    seen += 1;
    if (seen === count) {
      onLast();
      break;
    }
  }
  return { text, seen };
}

test.each(APIS)("an answer of %s in one piece is acknowledged with its text alone", async (_name, api) => {
  const chat = await setup();
  expect(await api.whole(chat)).toBe(TEXTS.join(""));
  expect(await chat.acknowledgedTexts()).toEqual([TEXTS.join("")]);
  expect(api.sent(chat)).toBe(PROMPT_WITH_AD);
  expect(chat.server.calls[0]?.headers["x-adrelay-ad"]).toBe("off");
});

test.each(APIS)(
  "a stream of %s is acknowledged as far as it was read, wherever it is left",
  async (_name, api) => {
    const chat = await setup();
    const { text, seen } = await read(api.stream(chat));
    const shown = [text];
    for (let count = 1; count <= seen; count += 1) {
      shown.push((await read(api.stream(chat), count)).text);
    }
    expect(text).toBe(TEXTS.join(""));
    expect(await chat.acknowledgedTexts()).toEqual(shown);
  },
);

test.each(APIS)("an abort of a stream of %s acknowledges what was read until then", async (_name, api) => {
  const chat = await setup();
  const { seen } = await read(api.stream(chat));
  const shown = [TEXTS.join("")];
  for (let count = 1; count <= seen; count += 1) {
    const controller = new AbortController();
    const stream = api.stream(chat, { signal: controller.signal });
    shown.push((await read(stream, count, () => controller.abort())).text);
  }
  expect(await chat.acknowledgedTexts()).toEqual(shown);
});

test.each(APIS)(
  "a stream of %s whose signal fires ends without an error for a reader who reads on",
  async (_name, api) => {
    const chat = await setup();
    const controller = new AbortController();
    let text = "";
    for await (const chunk of api.stream(chat, { signal: controller.signal })) {
      text += chunk;
      if (text === TEXTS[0]) {
        controller.abort();
      }
    }
    expect(text).toBe(TEXTS[0]);
    expect(await chat.acknowledgedTexts()).toEqual([text]);
  },
);

test.each(APIS)("a stream of %s that breaks acknowledges what came, and fails alike", async (_name, api) => {
  const chat = await setup();
  const shown: string[] = [];
  for (const breakAfter of [1, 2, 3, 4]) {
    chat.server.onCall(() => ({ texts: TEXTS, breakAfter }));
    let text = "";
    const reading = (async () => {
      for await (const chunk of api.stream(chat)) {
        text += chunk;
      }
    })();
    await expect(reading).rejects.toThrow();
    shown.push(text);
  }
  expect(await chat.acknowledgedTexts()).toEqual(shown);
});

test.each(APIS)("a prompt with an ad that %s refuses goes again without it", async (_name, api) => {
  const chat = await setup();
  chat.server.onCall((_call, count) => (count === 0 ? { status: 400 } : { texts: TEXTS }));
  expect(await api.whole(chat)).toBe(TEXTS.join(""));
  expect([api.sent(chat, 0), api.sent(chat, 1)]).toEqual([PROMPT_WITH_AD, QUESTION]);
  expect(await chat.acknowledgedTexts()).toEqual([TEXTS.join("")]);
});

test("what may have no ad goes to the model as it is", async () => {
  const chat = await setup();
  const { relay, server } = chat;
  const resource = openAi(chat).chat.completions;
  const tool = { role: "tool" as const, tool_call_id: "t", content: "r" };
  const requests = [
    { messages, response_format: { type: "json_object" } },
    { messages, tool_choice: "required" },
    { messages, n: 2 },
    { messages: [...messages, tool] },
    { messages: [...messages, { role: "assistant", content: "I would" }] },
    { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "http://a/b" } }] }] },
  ] as const;
  for (const request of requests) {
    // The SDK's types are stricter than literals of different shapes in one list.
    const body = { model: "m", ...request } as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming;
    await withOpenAiAd(relay, resource, body, CONTEXT);
    expect(server.calls.at(-1)?.body).toEqual(JSON.parse(JSON.stringify(body)));
  }
  expect(chat.events).toEqual([]);
});

test("the ad is asked for all texts and put into the last one, and nothing else of the request changes", async () => {
  const chat = await setup();
  const image = { type: "image_url" as const, image_url: { url: "http://a/b" } };
  const parts = [{ type: "text" as const, text: "Look:" }, { type: "text" as const, text: "What?" }, image];
  const history = [
    { role: "system" as const, content: "Be short." },
    ...messages,
    { role: "assistant" as const, content: "None." },
  ];
  const body = {
    model: "m",
    temperature: 0.5,
    messages: [...history, { role: "user" as const, content: parts }],
  };
  // A service that doesn't leave the texts as they were can't have its ad in one of them.
  await withOpenAiAd(chat.relay, openAi(chat).chat.completions, body, CONTEXT);
  expect(chat.server.calls[0]?.body).toEqual(body);
  chat.wrapPrompts();
  await withOpenAiAd(chat.relay, openAi(chat).chat.completions, body, CONTEXT);
  const content = [parts[0], { type: "text", text: "<ad>What?</ad>" }, image];
  expect(chat.server.calls[1]?.body).toEqual({ ...body, messages: [...history, { role: "user", content }] });
});
