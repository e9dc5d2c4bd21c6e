/** What the demo model needs of one of the three interfaces. */
import { randomBytes } from "node:crypto";
import type { z } from "zod";
import type { Ask, Reply } from "../answer/ask.ts";

/** An event of a stream. */
export interface SseEvent {
  /** Absent where the interface names no events. */
  readonly name?: string;
  /** JSON, or a word such as `[DONE]`. */
  readonly data: string;
  /** The part of the answer's text in it. */
  readonly text?: string;
  /** The last event of every stream, by which a caller knows that nothing is missing. */
  readonly isLast?: true;
}

export type AskResult =
  | { readonly kind: "ok"; readonly ask: Ask }
  | { readonly kind: "faulty"; readonly message: string; readonly param: string };

export interface Dialect {
  readonly api: "openai" | "anthropic";
  /** Checks a body and says what it asks for. */
  parseAsk(body: unknown, requestChars: number): AskResult;
  /** The answer that isn't streamed. */
  formatAnswer(ask: Ask, reply: Reply): object;
  /** The answer as a stream. `usageAfterEnd`: the usage comes behind the event that ends the text. */
  formatEvents(ask: Ask, reply: Reply, options: { readonly usageAfterEnd: boolean }): Iterable<SseEvent>;
  /** The event by which the provider reports a failure in a stream that has begun. */
  errorEvent(): SseEvent;
}

/** Reads what a body asks for, or says what is wrong with it in the words of the interface's own errors. */
export function parserOf<T>(
  schema: z.ZodType<T>,
  askOf: (body: T, requestChars: number) => Ask,
): Dialect["parseAsk"] {
  return (body, requestChars) => {
    const parsed = schema.safeParse(body);
    if (parsed.success) {
      return { kind: "ok", ask: askOf(parsed.data, requestChars) };
    }
    const [issue] = parsed.error.issues;
    const param = issue?.path.join(".") ?? "";
    return { kind: "faulty", param, message: `${param || "body"}: ${issue?.message ?? "not valid"}` };
  };
}

/** An id in the provider's form: `chatcmpl-…`, `msg_…`. */
export function makeId(prefix: string): string {
  return `${prefix}${randomBytes(12).toString("hex")}`;
}

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

/** A message, or another item of a conversation. */
type Item = Readonly<Record<string, unknown>>;

/** The text of the user's last message that has one. */
export function promptOf(items: readonly Item[], types: readonly string[]): string {
  const texts = items.flatMap((item) =>
    item["role"] === "user" ? (textOf(item["content"], types) ?? []) : [],
  );
  return texts.at(-1) ?? "";
}

/** How many steps have results behind the user's last message. */
export function countSteps(items: readonly Item[], isResult: (item: Item) => boolean): number {
  const userAt = items.findLastIndex((item) => item["role"] === "user");
  return countRuns(items.slice(userAt + 1).map(isResult));
}

/** `choice`: the word or object by which a caller says whether tools may or must be called. */
export function toolChoiceOf(choice: unknown): Ask["toolChoice"] {
  if (choice === "none") {
    return "none";
  }
  return (choice ?? "auto") === "auto" ? "auto" : "forced";
}

/** The text of a content that is a string or a list of parts. Only parts of the given types count. */
function textOf(content: unknown, types: readonly string[]): string | undefined {
  if (typeof content === "string") {
    return content;
  }
  if (!Array.isArray(content)) {
    return undefined;
  }
  const texts = content.flatMap((part: unknown) => {
    const { type, text } = Object(part);
    return types.includes(type) && typeof text === "string" ? [text] : [];
  });
  return texts.length === 0 ? undefined : texts.join("\n");
}

/** How many runs of true values there are: several results of one step count once. */
function countRuns(values: readonly boolean[]): number {
  return values.filter((value, at) => value && values[at - 1] !== true).length;
}

/** The arguments of a call in two pieces, as providers stream them. */
export function halvesOf(input: string): [string, string] {
  const middle = Math.ceil(input.length / 2);
  return [input.slice(0, middle), input.slice(middle)];
}
