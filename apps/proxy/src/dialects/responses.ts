/** OpenAI's `/v1/responses`. */
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
import type { BodyRules, BodySkipReason, Dialect, EventReading } from "./dialect.ts";
import { formatOpenAiError } from "./error-bodies.ts";
import { adMayGoIn, findUserText, type Item, type ItemRules, skip } from "./find-user-text.ts";
import { type JsonPlaces, type NodeId, parseJson, scanJson } from "./json-places.ts";
import { demandsStructure, forcesTool, ROOT, wantsAudio } from "./request-rules.ts";
import { readTypedEvents, type TypedEventReader } from "./typed-events.ts";

/** Frequent or large events without anything that is read here. */
const UNREAD_EVENTS = new Set([
  "response.created",
  "response.in_progress",
  "response.queued",
  "response.content_part.added",
  "response.content_part.done",
  "response.output_text.done",
  "response.output_text.annotation.added",
  "response.function_call_arguments.delta",
  "response.function_call_arguments.done",
  "response.custom_tool_call_input.delta",
  "response.custom_tool_call_input.done",
  "response.reasoning_text.delta",
  "response.reasoning_text.done",
  "response.reasoning_summary_text.delta",
  "response.reasoning_summary_text.done",
  "response.code_interpreter_call_code.delta",
  "response.image_generation_call.partial_image",
]);

type Output = Readonly<Record<string, unknown>>;

export const responses: Dialect = {
  name: "responses",
  readRequest(body, rules) {
    const scanned = scanJson(body);
    if (scanned.kind !== "scanned") return skip(scanned.kind);
    const { json } = scanned;
    const reason = skipReason(json, rules);
    if (reason !== undefined) return skip(reason);
    const input = json.member(ROOT, "input");
    if (input === undefined) return skip("no_user_text");
    if (json.kindOf(input) !== "array") return adMayGoIn(json, [input]);
    const items = json.children(input);
    if (isReference(json, items.at(-1))) return skip("provider_state");
    return findUserText({ json, items, rules: ITEMS, allowsCacheMarked: rules.allowsCacheMarked });
  },
  newReader: () => readTypedEvents(new ResponsesReader(), UNREAD_EVENTS),
  readAnswer(body) {
    const answer = parseJson(body.toString());
    if (!isRecord(answer) || !Array.isArray(answer["output"])) return FAILED;
    const items = recordsOf(answer["output"]);
    const calls = new StepCalls();
    const callIds = items.flatMap((item) => addCall(calls, item));
    const hasFailed = isError(answer["error"]) || FAILED_STATES.includes(textOf(answer["status"]));
    return readingOf(items.map(itemText).join(""), callIds, hasFailed ? FAILED.end : calls.end());
  },
  formatError: formatOpenAiError,
};

const FAILED_STATES = ["failed", "cancelled"];

function skipReason(json: JsonPlaces, rules: BodyRules): BodySkipReason | undefined {
  const text = json.member(ROOT, "text");
  if (text !== undefined && demandsStructure(json, json.member(text, "format"))) return "structured_output";
  if (forcesTool(json)) return "forced_tool";
  if (wantsAudio(json)) return "audio";
  if (json.scalarMember(ROOT, "background") === true) return "background";
  const hasState = ["conversation", "previous_response_id"].some(
    (key) => json.member(ROOT, key) !== undefined,
  );
  if (hasState) return "provider_state";
  if (json.member(ROOT, "cache_control") !== undefined && !rules.allowsCacheMarked) return "cache_marked";
  return rules.allowsStoredResponses || json.scalarMember(ROOT, "store") === false
    ? undefined
    : "stored_response";
}

/** The last item is one that only the provider has. */
function isReference(json: JsonPlaces, item: NodeId | undefined): boolean {
  return item !== undefined && json.stringMember(item, "type") === "item_reference";
}

const ITEMS: ItemRules = {
  textTypes: ["input_text", "text"],
  classify(json: JsonPlaces, item: NodeId): Item {
    const type = json.stringMember(item, "type") ?? "message";
    if (type !== "message") return classifyOther(json, item, type);
    switch (json.stringMember(item, "role")) {
      case "user":
        return { kind: "user" };
      case "system":
      case "developer":
        return { kind: "instruction" };
      default:
        return { kind: "assistant", pausedIds: [] };
    }
  },
};

/** All results of tools have types that end alike. So tools that are added later are understood. */
function classifyOther(json: JsonPlaces, item: NodeId, type: string): Item {
  const isApproval = type === "mcp_approval_response";
  if (!isApproval && !isResultType(type)) return { kind: "assistant", pausedIds: [] };
  const id = json.stringMember(item, isApproval ? "approval_request_id" : "call_id");
  return { kind: "results", callIds: id === undefined || id === "" ? [] : [id] };
}

function isResultType(type: string): boolean {
  return type.endsWith("_output");
}

class ResponsesReader implements TypedEventReader {
  readonly #calls = new StepCalls();

  read(type: unknown, event: Readonly<Record<string, unknown>>): EventReading {
    switch (type) {
      case "response.output_text.delta":
        return readingOf(textOf(event["delta"]));
      case "response.output_item.added":
      case "response.output_item.done":
        return isRecord(event["item"]) ? readingOf("", addCall(this.#calls, event["item"])) : NOTHING;
      case "response.completed":
      case "response.incomplete":
        return readingOf("", [], this.#calls.end());
      case "response.failed":
      case "response.cancelled":
      case "error":
        return FAILED;
      default:
        return NOTHING;
    }
  }
}

/** Calls of the client's tools have a `call_id`. A call whose result is in the same answer was the server's. */
function addCall(calls: StepCalls, item: Output): readonly string[] {
  const type = textOf(item["type"]);
  if (type === "mcp_approval_request") return calls.add(item["id"]);
  if (!isResultType(type)) return calls.add(item["call_id"]);
  calls.markAnswered(item["call_id"]);
  return [];
}

function itemText(item: Output): string {
  if (item["type"] !== "message") return "";
  return recordsOf(item["content"])
    .filter((part) => part["type"] === "output_text")
    .map((part) => textOf(part["text"]))
    .join("");
}
