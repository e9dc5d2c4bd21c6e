/** The clients of the examples, made as in them, each with a limit of time and a fault of the demo model. */

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { Anthropic } from "@anthropic-ai/sdk";
import { type LanguageModel, streamText } from "ai";
import { OpenAI } from "openai";
import { headersOf } from "../../e2e/model-proxy/proxy-stack.ts";

export interface Question {
  readonly proxyUrl: string;
  readonly session: string;
  /** For the demo model. */
  readonly fault: string;
  /** The client's own limit; undefined leaves the client's default. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Called with each piece of the text. */
  readonly onText?: (text: string) => void;
}

/** Asks once, streamed. Rejects as the client does. */
type Ask = (question: Question) => Promise<void>;

const TEXT = "Which running shoes should I buy?";
const MESSAGES = [{ role: "user" as const, content: TEXT }];

function optionsOf({ session, fault, timeoutMs }: Question) {
  const defaultHeaders = { ...headersOf(session), "X-Run": session, "X-Demo-Fault": fault };
  return { apiKey: "k", defaultHeaders, ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }) };
}

const openAi = (question: Question) =>
  new OpenAI({ ...optionsOf(question), baseURL: `${question.proxyUrl}/v1` });

const askChat: Ask = async (question) => {
  const { signal, onText } = question;
  const body = { model: "gpt-5", stream: true as const, messages: MESSAGES };
  for await (const { choices } of await openAi(question).chat.completions.create(body, { signal })) {
    onText?.(choices[0]?.delta.content ?? "");
  }
};

const askResponse: Ask = async (question) => {
  const { signal, onText } = question;
  const body = { model: "gpt-5", stream: true as const, store: false, input: TEXT };
  for await (const event of await openAi(question).responses.create(body, { signal })) {
    if (event.type === "response.output_text.delta") onText?.(event.delta);
  }
};

const askMessage: Ask = async (question) => {
  const { signal, onText, proxyUrl } = question;
  const client = new Anthropic({ ...optionsOf(question), baseURL: proxyUrl });
  const body = { model: "claude-opus-5", max_tokens: 1000, messages: MESSAGES };
  const stream = client.messages.stream(body, { signal });
  stream.on("text", (text) => onText?.(text));
  await stream.done();
};

/** The AI SDK tells errors to `onError`, and ends the text. */
async function askAiSdk(model: LanguageModel, question: Question): Promise<void> {
  const { session, fault, signal, timeoutMs, onText } = question;
  let failure: unknown;
  const { textStream } = streamText({
    model,
    prompt: TEXT,
    headers: { ...headersOf(session), "X-Run": session, "X-Demo-Fault": fault },
    ...(signal && { abortSignal: signal }),
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
    onError: ({ error }) => {
      failure = error;
    },
  });
  for await (const text of textStream) onText?.(text);
  if (failure !== undefined) throw failure;
}

const baseOf = ({ proxyUrl }: Question) => ({ baseURL: `${proxyUrl}/v1`, apiKey: "k" });
const askAiOpenAi: Ask = (question) => askAiSdk(createOpenAI(baseOf(question))("gpt-5"), question);
const askAiAnthropic: Ask = (question) =>
  askAiSdk(createAnthropic(baseOf(question))("claude-opus-5"), question);

/** In what clients differ. */
interface Habits {
  /** A call that takes too long is repeated. */
  readonly repeatsLate: boolean;
  /** An abort rejects; with the others the stream only ends. */
  readonly rejectsAborted: boolean;
}

const OPENAI = { repeatsLate: true, rejectsAborted: false };
const ANTHROPIC = { repeatsLate: true, rejectsAborted: true };
const AI_SDK = { repeatsLate: false, rejectsAborted: false };

export const CLIENTS: readonly (readonly [string, Ask, Habits])[] = [
  ["openai, chat completions", askChat, OPENAI],
  ["openai, responses", askResponse, OPENAI],
  ["@anthropic-ai/sdk", askMessage, ANTHROPIC],
  ["ai with @ai-sdk/openai", askAiOpenAi, AI_SDK],
  ["ai with @ai-sdk/anthropic", askAiAnthropic, AI_SDK],
];
