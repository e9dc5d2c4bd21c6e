/** @adrelay/client/openai: one call of the `openai` package with an ad. docs/client.md is the guide. */
import type { OpenAI } from "openai";
import type { InjectOptions, Relay } from "../relay.ts";
import type { AnswerStream } from "../watch-answer.ts";
import { type AdContext, membersOf } from "../wire.ts";
import { callWithAd } from "./call-with-ad.ts";

type Completions = Pick<OpenAI["chat"]["completions"], "create">;
type Responses = Pick<OpenAI["responses"], "create">;
type Request = OpenAI.ChatCompletionCreateParams | OpenAI.Responses.ResponseCreateParams;

/**
 * Asks for an ad, calls `create` with it, and acknowledges the text that is read of the answer. A stream comes back as a stream
 * of the same chunks. Rejects only with the model's error.
 *
 * `resource` is `openai.chat.completions` or `openai.responses`.
 */
export function withAd(
  relay: Relay,
  resource: Completions,
  request: OpenAI.ChatCompletionCreateParamsNonStreaming,
  context: AdContext,
  options?: InjectOptions,
): Promise<OpenAI.ChatCompletion>;
export function withAd(
  relay: Relay,
  resource: Completions,
  request: OpenAI.ChatCompletionCreateParamsStreaming,
  context: AdContext,
  options?: InjectOptions,
): Promise<AnswerStream<OpenAI.ChatCompletionChunk>>;
export function withAd(
  relay: Relay,
  resource: Responses,
  request: OpenAI.Responses.ResponseCreateParamsNonStreaming,
  context: AdContext,
  options?: InjectOptions,
): Promise<OpenAI.Responses.Response>;
export function withAd(
  relay: Relay,
  resource: Responses,
  request: OpenAI.Responses.ResponseCreateParamsStreaming,
  context: AdContext,
  options?: InjectOptions,
): Promise<AnswerStream<OpenAI.Responses.ResponseStreamEvent>>;
export function withAd(
  relay: Relay,
  // The overloads say which request goes with which resource. Here they are one.
  resource: { create(request: never, options: object): unknown },
  request: Request,
  context: AdContext,
  options: InjectOptions = {},
): Promise<unknown> {
  return callWithAd<Request>({
    relay,
    body: request,
    member: ("messages" in request ? "messages" : "input") as keyof Request,
    create: (body, own) => resource.create(body as never, own),
    textOf,
    context,
    options,
  });
}

/** Of a chunk, an event or a whole answer: the text for the user, no reasoning, refusals or arguments of tools. */
function textOf(chunk: unknown): string {
  const { choices, type, delta, output } = membersOf(chunk);
  if (Array.isArray(choices)) {
    const { delta: part, message } = membersOf(choices[0]);
    return asText(membersOf(part ?? message)["content"]);
  }
  if (Array.isArray(output)) {
    return output
      .flatMap((item) => membersOf(item)["content"] ?? [])
      .map(outputTextOf)
      .join("");
  }
  return type === "response.output_text.delta" ? asText(delta) : "";
}

function outputTextOf(part: unknown): string {
  const { type, text } = membersOf(part);
  return type === "output_text" ? asText(text) : "";
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : "";
}
