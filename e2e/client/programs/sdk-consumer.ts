/**
 * A program that uses the published types of the SDKs' helpers beside the SDKs themselves, as an older compiler sees them. The
 * errors that it expects show that no type has become `any`.
 */

import type { Relay } from "@adrelay/client";
import { adMiddleware, type SkipReason } from "@adrelay/client/ai-sdk";
import { withAd as withAdOfAnthropic } from "@adrelay/client/anthropic";
import { withAd as withAdOfOpenAi } from "@adrelay/client/openai";
import type { Anthropic } from "@anthropic-ai/sdk";
import { streamText, wrapLanguageModel } from "ai";
import type { OpenAI } from "openai";

const context = { request_context: { session_id: "s-1" } };

export function wrap(relay: Relay, model: Parameters<typeof wrapLanguageModel>[0]["model"]) {
  const skipped: SkipReason[] = [];
  const middleware = adMiddleware({
    relay,
    context: () => context,
    onSkip: (reason) => skipped.push(reason),
  });
  // @ts-expect-error a time is a number
  adMiddleware({ relay, turnWaitMs: "1s" });
  // @ts-expect-error a middleware is no model
  wrapLanguageModel({ model: middleware, middleware });
  return streamText({ model: wrapLanguageModel({ model, middleware }), prompt: "Which shoes?" }).textStream;
}

export async function askOpenAi(relay: Relay, { chat, responses }: OpenAI): Promise<string> {
  const messages = [{ role: "user" as const, content: "Which shoes?" }];
  let text = "";
  const request = { model: "m", stream: true as const, messages };
  for await (const { choices } of await withAdOfOpenAi(relay, chat.completions, request, context)) {
    text += choices[0]?.delta.content ?? "";
  }
  const { output_text } = await withAdOfOpenAi(relay, responses, { model: "m", input: "Which?" }, context);
  // @ts-expect-error a context has a session
  await withAdOfOpenAi(relay, responses, { model: "m", input: "Which?" }, { request_context: 1 });
  return text + output_text;
}

export async function askAnthropic(relay: Relay, { messages }: Anthropic): Promise<string | undefined> {
  const asked = [{ role: "user" as const, content: "Which shoes?" }];
  const request = { model: "m", max_tokens: 100, messages: asked };
  const { content } = await withAdOfAnthropic(relay, messages, request, context);
  // @ts-expect-error the messages are missing
  await withAdOfAnthropic(relay, messages, { model: "m", max_tokens: 100 }, context);
  const [first] = content;
  return first?.type === "text" ? first.text : undefined;
}
