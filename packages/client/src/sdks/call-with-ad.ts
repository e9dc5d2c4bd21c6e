/** What the helpers for SDKs share. They read a request's JSON, whose members have different names in each API. */
import type { InjectOptions, Relay } from "../relay.ts";
import { isNotBlank, joinTexts, lastTextWithAd } from "../several-texts.ts";
import type { TextOf } from "../shown-text.ts";
import { endOnAbort, isAsyncIterable, NO_WATCHER, watchIterable } from "../watch-answer.ts";
import { type AdContext, membersOf } from "../wire.ts";

/** The texts of the user's message. */
interface UserText {
  readonly text: string;
  /** The list of messages with the enhanced prompt; undefined if the ad service changed a message of several texts. */
  readonly replace: (enhanced: string) => unknown;
}

/** `create` of an SDK, with the options that this helper gives it. */
type Create<Body> = (
  body: Body,
  options: { signal?: AbortSignal; headers: Record<string, string> },
) => unknown;

interface CallInput<Body> {
  readonly relay: Relay;
  readonly body: Body;
  /** The member of the body with the messages. */
  readonly member: keyof Body & string;
  readonly create: Create<Body>;
  readonly textOf: TextOf<unknown>;
  readonly context: AdContext;
  readonly options: InjectOptions;
}

/** A model's server that refuses the prompt with the ad may take the user's own. */
const REFUSED: readonly unknown[] = [400, 413, 422];

export async function callWithAd<Body extends object>(input: CallInput<Body>): Promise<unknown> {
  const { relay, body, member, create, textOf, context, options } = input;
  const { signal } = options;
  // A proxy on the way adds no second ad.
  const request = { ...(signal && { signal }), headers: { "X-Adrelay-Ad": "off" } };
  const place = mayHaveAd(body) ? findUserText(body[member]) : undefined;
  if (place === undefined) {
    const answer = await create(body, request);
    return isAsyncIterable(answer) ? watchIterable(answer, NO_WATCHER, endOnAbort(signal)) : answer;
  }
  const callModel = async (prompt: string) => {
    try {
      return await create({ ...body, [member]: place.replace(prompt) ?? body[member] }, request);
    } catch (error) {
      if (prompt === place.text || !REFUSED.includes(membersOf(error)["status"])) {
        throw error;
      }
      return create(body, request);
    }
  };
  return relay.withAd({ ...context, prompt: place.text }, callModel, { ...options, textOf });
}

/** An ad would break, or be lost in, an answer that a program reads, and one that the provider keeps. */
function mayHaveAd(body: object): boolean {
  const { n, audio, background, response_format, text, output_config, tool_choice, ...rest } =
    membersOf(body);
  const { cache_control, previous_response_id, conversation } = rest;
  const formats = [response_format, membersOf(text)["format"], membersOf(output_config)["format"]];
  const choice = membersOf(tool_choice)["type"] ?? tool_choice ?? "auto";
  return (
    (n ?? 1) === 1 &&
    [audio, cache_control, previous_response_id, conversation].every((value) => value == null) &&
    background !== true &&
    formats.every((format) => format == null || membersOf(format)["type"] === "text") &&
    (choice === "auto" || choice === "none")
  );
}

/** The last text part of the last message, if that is the user's. Results of tools get no ad, nor does what is to be cached. */
function findUserText(messages: unknown): UserText | undefined {
  if (!Array.isArray(messages)) {
    return asText(messages, (text) => text);
  }
  const roles = messages.map((message) => membersOf(message)["role"]);
  const at = roles.findIndex((role, place) =>
    roles.slice(place).every((later) => later === role || later === "system" || later === "developer"),
  );
  const last = at < 0 ? -1 : roles.lastIndexOf("user");
  const { role, content, ...more } = membersOf(messages[last]);
  if (role !== "user" || last < at) {
    return undefined;
  }
  const put = (changed: unknown) =>
    messages.map((message, place) => (place === last ? { ...more, role, content: changed } : message));
  return Array.isArray(content) ? findTextPart(content, put) : asText(content, put);
}

const TEXT_PARTS: readonly unknown[] = ["text", "input_text"];

function findTextPart(content: readonly unknown[], put: (content: unknown) => unknown): UserText | undefined {
  const parts = content.map(membersOf);
  const at = parts.map(({ type }) => TEXT_PARTS.includes(type)).lastIndexOf(true);
  const isExcluded = parts.some(({ type, cache_control }) => type === "tool_result" || cache_control != null);
  if (isExcluded || asText(parts[at]?.["text"], String) === undefined) {
    return undefined;
  }
  const texts = parts
    .flatMap(({ type, text }) => (TEXT_PARTS.includes(type) && typeof text === "string" ? text : []))
    .filter(isNotBlank);
  return asText(joinTexts(texts), (enhanced) => {
    const text = lastTextWithAd(enhanced, texts);
    return text && put(parts.map((part, place) => (place === at ? { ...part, text } : part)));
  });
}

function asText(text: unknown, replace: (text: string) => unknown): UserText | undefined {
  return typeof text === "string" && text.trim() !== "" ? { text, replace } : undefined;
}
