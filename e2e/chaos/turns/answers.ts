/** The three dialects, as a backend knows them: what it sends, and where the text of an answer is. */
import type { DialectName } from "@adrelay/core";

export const PATHS = {
  chat_completions: "/v1/chat/completions",
  messages: "/v1/messages",
  responses: "/v1/responses",
} as const satisfies Record<DialectName, string>;

/** The body of a call with one message. */
export function bodyOf(dialect: DialectName, prompt: string, isStreamed: boolean): string {
  const message = { role: "user", content: prompt };
  const common = { model: "demo", stream: isStreamed };
  switch (dialect) {
    case "chat_completions":
      return JSON.stringify({ ...common, messages: [message] });
    case "messages":
      return JSON.stringify({ ...common, max_tokens: 1000, messages: [message] });
    case "responses":
      return JSON.stringify({ ...common, input: [message] });
    default:
      return dialect satisfies never;
  }
}

/** The text in one event of a stream; empty if it has none. */
export function textOfEvent(dialect: DialectName, data: string): string {
  if (data === "[DONE]") {
    return "";
  }
  const event = Object(JSON.parse(data));
  switch (dialect) {
    case "chat_completions":
      return String(event.choices?.[0]?.delta?.content ?? "");
    case "messages":
      return event.type === "content_block_delta" ? String(event.delta?.text ?? "") : "";
    case "responses":
      return event.type === "response.output_text.delta" ? String(event.delta) : "";
    default:
      return dialect satisfies never;
  }
}

/** The text of an answer that isn't streamed. */
export function textOfAnswer(dialect: DialectName, body: string): string {
  const answer = Object(JSON.parse(body));
  switch (dialect) {
    case "chat_completions":
      return String(answer.choices?.[0]?.message?.content ?? "");
    case "messages":
      return textsOf(answer.content);
    case "responses":
      return Array.isArray(answer.output)
        ? answer.output.map((item: unknown) => textsOf(Object(item).content)).join("")
        : "";
    default:
      return dialect satisfies never;
  }
}

function textsOf(parts: unknown): string {
  return Array.isArray(parts) ? parts.map((part: unknown) => String(Object(part).text ?? "")).join("") : "";
}

/** Tells the data of each event of a stream, as its bytes come. */
export class EventLines {
  readonly #onData: (data: string) => void;
  #rest = "";

  constructor(onData: (data: string) => void) {
    this.#onData = onData;
  }

  add(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data: ")) {
        this.#onData(line.slice("data: ".length));
      }
    }
  }
}
