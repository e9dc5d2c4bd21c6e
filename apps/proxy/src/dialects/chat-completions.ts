/** OpenAI's `/v1/chat/completions`, as many other model servers speak it, too. */
import {
  FAILED,
  isError,
  isRecord,
  NOTHING,
  readingOf,
  recordsOf,
  StepCalls,
  textOf,
} from "./answer-parts.ts";
import type { AnswerReader, BodySkipReason, Dialect, EventReading, StreamEvent } from "./dialect.ts";
import { formatOpenAiError } from "./error-bodies.ts";
import { findInMessages, type Item, type ItemRules, skip } from "./find-user-text.ts";
import { type JsonPlaces, type NodeId, parseJson, scanJson } from "./json-places.ts";
import { demandsStructure, forcesTool, ROOT, wantsAudio } from "./request-rules.ts";

type Choice = Readonly<Record<string, unknown>>;

export const chatCompletions: Dialect = {
  name: "chat_completions",
  readRequest(body, rules) {
    const scanned = scanJson(body);
    if (scanned.kind !== "scanned") return skip(scanned.kind);
    const { json } = scanned;
    const reason = skipReason(json);
    if (reason !== undefined) return skip(reason);
    if (json.scalarMember(ROOT, "store") === true && !rules.allowsStoredResponses)
      return skip("stored_response");
    return findInMessages(json, ITEMS, rules);
  },
  newReader: () => new ChatReader(),
  readAnswer(body) {
    const answer = parseJson(body.toString());
    if (!isRecord(answer) || isError(answer["error"])) return FAILED;
    const choice = firstChoice(answer["choices"]);
    if (choice === undefined || !isRecord(choice["message"])) return FAILED;
    const calls = new StepCalls();
    const callIds = addCalls(calls, choice["message"]);
    const end = choice["finish_reason"] === "error" ? FAILED.end : calls.end();
    return readingOf(contentText(choice["message"]["content"]), callIds, end);
  },
  formatError: formatOpenAiError,
};

function skipReason(json: JsonPlaces): BodySkipReason | undefined {
  if (json.member(ROOT, "n") !== undefined && json.scalarMember(ROOT, "n") !== 1) return "choices";
  if (demandsStructure(json, json.member(ROOT, "response_format"))) return "structured_output";
  if (forcesTool(json) || namesFunction(json)) return "forced_tool";
  return wantsAudio(json) ? "audio" : undefined;
}

/** The older way to force a function. */
function namesFunction(json: JsonPlaces): boolean {
  const call = json.member(ROOT, "function_call");
  return call !== undefined && json.kindOf(call) === "object";
}

const ITEMS: ItemRules = {
  textTypes: ["text"],
  classify(json: JsonPlaces, message: NodeId): Item {
    switch (json.stringMember(message, "role")) {
      case "user":
        return { kind: "user" };
      case "system":
      case "developer":
        return { kind: "instruction" };
      case "tool":
      case "function": {
        const id = json.stringMember(message, "tool_call_id");
        return { kind: "results", callIds: id === undefined || id === "" ? [] : [id] };
      }
      default:
        return { kind: "assistant", pausedIds: [] };
    }
  },
};

class ChatReader implements AnswerReader {
  readonly #calls = new StepCalls();
  #isOver = false;

  read({ event, data }: StreamEvent): EventReading {
    if (this.#isOver) return NOTHING;
    const reading = data === "[DONE]" ? readingOf("", [], this.#calls.end()) : this.#readChunk(event, data);
    this.#isOver = reading.end !== undefined;
    return reading;
  }

  #readChunk(event: string | undefined, data: string): EventReading {
    if (event === "error") return FAILED;
    const chunk = parseJson(data);
    if (!isRecord(chunk)) return NOTHING;
    const choice = firstChoice(chunk["choices"]);
    const delta = choice?.["delta"];
    const text = isRecord(delta) ? contentText(delta["content"]) : "";
    const callIds = isRecord(delta) ? addCalls(this.#calls, delta) : [];
    const reason = choice?.["finish_reason"];
    if (isError(chunk["error"]) || reason === "error") return readingOf(text, callIds, FAILED.end);
    const isLast = typeof reason === "string" && reason !== "";
    return readingOf(text, callIds, isLast ? this.#calls.end() : undefined);
  }
}

/** The choice that is read: number 0, or one without a number. */
function firstChoice(choices: unknown): Choice | undefined {
  return recordsOf(choices).find((choice) => (choice["index"] ?? 0) === 0);
}

/** Some servers send text as a list of parts, with the model's thoughts between them. */
function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  return recordsOf(content)
    .filter((part) => part["type"] === "text")
    .map((part) => textOf(part["text"]))
    .join("");
}

function addCalls(calls: StepCalls, message: Readonly<Record<string, unknown>>): readonly string[] {
  const made = message["tool_calls"];
  return made === undefined ? [] : calls.add(...recordsOf(made).map((call) => call["id"]));
}
