/** The parts of a model call that matter here: the user's text, what rules an ad out, and the marks on tool calls. */
import type { LanguageModelMiddleware } from "ai";

type Wrap = Parameters<NonNullable<LanguageModelMiddleware["wrapStream"]>>[0];
type Model = Wrap["model"];
export type CallParams = Wrap["params"];
type Options = CallParams["providerOptions"];
export type Generated = Awaited<ReturnType<Model["doGenerate"]>>;
export type Streamed = Awaited<ReturnType<Model["doStream"]>>;
type PartOf<Stream> = Stream extends ReadableStream<infer Part> ? Part : never;
/** A part of an answer, streamed or not. */
export type AnswerPart = PartOf<Streamed["stream"]> | Generated["content"][number];

/** Why no ad was asked for. */
export type SkipReason =
  /** Neither the call nor the `context` function gave a context. */
  | "no_context"
  /** The last user message has no text, or several. */
  | "no_user_text"
  /** The call continues a text of the model. */
  | "prefill"
  /** The call returns results of tools, but not of a turn that waits for them here. */
  | "unknown_step"
  /** The answer is to be JSON. */
  | "structured_output"
  | "forced_tool"
  /** The message is to be cached, or something behind it. An ad in it would be gone in the next call. */
  | "cache_marked"
  /** The provider keeps the conversation, and would show the ad's prompt to later calls. */
  | "provider_state";

/** Where an ad goes: the only text part of the last user message. Blank ones don't count. */
export interface UserText {
  readonly text: string;
  /** The message and those behind it. */
  readonly messages: CallParams["prompt"];
  /** The same prompt with another text in its place. */
  readonly replace: (text: string) => CallParams["prompt"];
}

export function findUserText({ prompt }: CallParams): UserText | undefined {
  const messageAt = prompt.map(({ role }) => role).lastIndexOf("user");
  const message = prompt[messageAt];
  if (message?.role !== "user") {
    return undefined;
  }
  const [part, another] = message.content.flatMap((one) =>
    one.type === "text" && one.text.trim() !== "" ? one : [],
  );
  // The ad service would judge only one of several.
  if (!part || another) {
    return undefined;
  }
  const replace = (text: string) => {
    const content = message.content.map((other) => (other === part ? { ...part, text } : other));
    return prompt.map((other, at) => (at === messageAt ? { ...message, content } : other));
  };
  return { text: part.text, messages: prompt.slice(messageAt), replace };
}

/** Why a new turn gets no ad; undefined if it may get one. */
export function decideSkip(params: CallParams, place: UserText | undefined): SkipReason | undefined {
  if (place === undefined) {
    return "no_user_text";
  }
  const { responseFormat, toolChoice, providerOptions } = params;
  const role = place.messages.filter((message) => message.role !== "system").at(-1)?.role;
  if (role !== "user") {
    return role === "tool" ? "unknown_step" : "prefill";
  }
  if (responseFormat?.type === "json") {
    return "structured_output";
  }
  if (toolChoice?.type === "required" || toolChoice?.type === "tool") {
    return "forced_tool";
  }
  if (hasOption(providerOptions, ["previousResponseId", "conversation"])) {
    return "provider_state";
  }
  const marked = place.messages.flatMap((message) => [
    message,
    ...(message.role === "user" ? message.content : []),
  ]);
  return marked.some((part) =>
    hasOption(part.providerOptions, ["cacheControl", "cache_control", "cachePoint"]),
  )
    ? "cache_marked"
    : undefined;
}

function hasOption(options: Options, names: readonly string[]): boolean {
  return Object.values(options ?? {}).some((own) => names.some((name) => own[name] != null));
}

/** Our own member of provider options and provider metadata. */
export const OWN = "adrelay";

/** The ad response of the turn whose tool call this prompt returns; undefined if it is none of ours. */
export function findMark({ messages }: UserText): string | undefined {
  const marks = messages
    .flatMap((message) => (message.role === "assistant" ? message.content : []))
    .flatMap((part) => part.providerOptions?.[OWN]?.["ad_response_id"] ?? []);
  return marks.at(-1)?.toString();
}

/**
 * The same part; a tool call with a mark of its turn. The AI SDK returns a call's metadata in the next step. Ids of calls don't
 * tell turns apart: some models count them anew in each answer.
 */
export function markCall<Part extends AnswerPart>(part: Part, adResponseId: string): Part {
  return part.type === "tool-call"
    ? { ...part, providerMetadata: { ...part.providerMetadata, [OWN]: { ad_response_id: adResponseId } } }
    : part;
}

/** Of what the user reads: no reasoning, no arguments of tools. */
export function textOfPart(part: AnswerPart): string {
  return part.type === "text-delta" ? part.delta : part.type === "text" ? part.text : "";
}
