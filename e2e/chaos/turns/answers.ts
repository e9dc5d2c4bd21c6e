/** The three dialects, as a backend knows them: what is said in an answer. `questions.ts` has what is sent. */
import type { DialectName } from "@adrelay/core";

/** What an event, or an answer that isn't streamed, says. */
export interface Said {
  readonly text: string;
  /** Of the calls of tools. */
  readonly callIds: readonly string[];
}

const NOTHING: Said = { text: "", callIds: [] };

/** Reads one event of a stream. */
export function readEvent(dialect: DialectName, data: string): Said {
  if (data === "[DONE]") {
    return NOTHING;
  }
  const event = Object(JSON.parse(data));
  switch (dialect) {
    case "chat_completions":
      return saidInChat(event.choices?.[0]?.delta);
    case "messages": {
      const text = event.type === "content_block_delta" ? String(event.delta?.text ?? "") : "";
      return { text, callIds: event.type === "content_block_start" ? idsIn([event.content_block]) : [] };
    }
    case "responses": {
      const text = event.type === "response.output_text.delta" ? String(event.delta) : "";
      return { text, callIds: event.type === "response.output_item.added" ? idsIn([event.item]) : [] };
    }
    default:
      return dialect satisfies never;
  }
}

/** Reads an answer that isn't streamed. */
export function readAnswer(dialect: DialectName, body: string): Said {
  const answer = Object(JSON.parse(body));
  switch (dialect) {
    case "chat_completions":
      return saidInChat(answer.choices?.[0]?.message);
    case "messages":
      return { text: textsOf(answer.content), callIds: idsIn(answer.content) };
    case "responses":
      return {
        text: listOf(answer.output)
          .map((item) => textsOf(Object(item).content))
          .join(""),
        callIds: idsIn(answer.output),
      };
    default:
      return dialect satisfies never;
  }
}

/** Of a message, or of a part of one. */
function saidInChat(message: unknown): Said {
  const { content, tool_calls: calls } = Object(message);
  const ids = listOf(calls).flatMap((call): unknown => Object(call).id ?? []);
  return { text: String(content ?? ""), callIds: ids.map(String) };
}

/** The ids by which the results of tools name their calls. */
function idsIn(items: unknown): readonly string[] {
  return listOf(items).flatMap((item) => {
    const { type, id, call_id: callId } = Object(item);
    return type === "tool_use" ? [String(id)] : type === "function_call" ? [String(callId)] : [];
  });
}

function textsOf(parts: unknown): string {
  return listOf(parts)
    .map((part) => String(Object(part).text ?? ""))
    .join("");
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

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
