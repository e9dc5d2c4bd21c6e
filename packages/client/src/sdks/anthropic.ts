/** @adrelay/client/anthropic: one call of the `@anthropic-ai/sdk` package with an ad. docs/client.md is the guide. */
import type { Anthropic } from "@anthropic-ai/sdk";
import type { InjectOptions, Relay } from "../relay.ts";
import type { AnswerStream } from "../watch-answer.ts";
import { type AdContext, membersOf } from "../wire.ts";
import { callWithAd } from "./call-with-ad.ts";

type Messages = Pick<Anthropic["messages"], "create">;

/**
 * Asks for an ad, calls `create` with it, and acknowledges the text that is read of the answer. A stream comes back as a stream
 * of the same events. Rejects only with the model's error.
 *
 * `resource` is `anthropic.messages`.
 */
export function withAd(
  relay: Relay,
  resource: Messages,
  request: Anthropic.MessageCreateParamsNonStreaming,
  context: AdContext,
  options?: InjectOptions,
): Promise<Anthropic.Message>;
export function withAd(
  relay: Relay,
  resource: Messages,
  request: Anthropic.MessageCreateParamsStreaming,
  context: AdContext,
  options?: InjectOptions,
): Promise<AnswerStream<Anthropic.RawMessageStreamEvent>>;
export function withAd(
  relay: Relay,
  resource: Messages,
  request: Anthropic.MessageCreateParams,
  context: AdContext,
  options: InjectOptions = {},
): Promise<unknown> {
  const create = (body: Anthropic.MessageCreateParams, own: object) => resource.create(body, own);
  return callWithAd({ relay, body: request, member: "messages", create, textOf, context, options });
}

/** Of an event or a whole message: the text for the user, no thinking or arguments of tools. */
function textOf(chunk: unknown): string {
  const { delta, content } = membersOf(chunk);
  const parts = Array.isArray(content) ? content : [delta];
  return parts.map(partTextOf).join("");
}

function partTextOf(part: unknown): string {
  const { type, text } = membersOf(part);
  return (type === "text" || type === "text_delta") && typeof text === "string" ? text : "";
}
