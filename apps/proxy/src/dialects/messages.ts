/** Anthropic's `/v1/messages`. */
import { FAILED, isRecord, NOTHING, readingOf, recordsOf, StepCalls, textOf } from "./answer-parts.ts";
import type { BodySkipReason, Dialect, EventReading } from "./dialect.ts";
import { formatAnthropicError } from "./error-bodies.ts";
import { findInMessages, type Item, type ItemRules, skip } from "./find-user-text.ts";
import { type JsonPlaces, type NodeId, parseJson, scanJson } from "./json-places.ts";
import { demandsStructure, forcesTool, ROOT } from "./request-rules.ts";
import { readTypedEvents, type TypedEventReader } from "./typed-events.ts";

/** Calls of tools that the server runs. A paused step is continued with them. */
const SERVER_CALLS = ["server_tool_use", "mcp_tool_use"];
/** Frequent events without anything that is read here. */
const UNREAD_EVENTS = new Set(["ping", "content_block_stop"]);

type Block = Readonly<Record<string, unknown>>;

export const messages: Dialect = {
  name: "messages",
  readRequest(body, rules) {
    const scanned = scanJson(body);
    if (scanned.kind !== "scanned") return skip(scanned.kind);
    const { json } = scanned;
    const reason = skipReason(json);
    if (reason !== undefined) return skip(reason);
    return findInMessages(json, ITEMS, rules);
  },
  newReader: () => readTypedEvents(new MessagesReader(), UNREAD_EVENTS),
  readAnswer(body) {
    const answer = parseJson(body.toString());
    if (!isRecord(answer) || !Array.isArray(answer["content"])) return FAILED;
    const blocks = recordsOf(answer["content"]);
    const text = blocks.map(blockText).join("");
    const calls = new StepCalls();
    const kinds = answer["stop_reason"] === "pause_turn" ? ["tool_use", ...SERVER_CALLS] : ["tool_use"];
    const callIds = calls.add(
      ...blocks.filter((block) => isOfType(block, kinds)).map((block) => block["id"]),
    );
    return readingOf(text, callIds, calls.end());
  },
  formatError: formatAnthropicError,
};

function skipReason(json: JsonPlaces): BodySkipReason | undefined {
  const config = json.member(ROOT, "output_config");
  const format = config === undefined ? undefined : json.member(config, "format");
  // The beta's name of the format, which the API still takes.
  if (demandsStructure(json, format) || demandsStructure(json, json.member(ROOT, "output_format"))) {
    return "structured_output";
  }
  return forcesTool(json) ? "forced_tool" : undefined;
}

const ITEMS: ItemRules = {
  textTypes: ["text"],
  classify(json: JsonPlaces, message: NodeId): Item {
    switch (json.stringMember(message, "role")) {
      case "user": {
        const results = blocksOf(json, message, ["tool_result"]);
        if (results.length === 0) return { kind: "user" };
        return { kind: "results", callIds: idsOf(json, results, "tool_use_id") };
      }
      case "system":
        return { kind: "instruction" };
      default:
        return { kind: "assistant", pausedIds: idsOf(json, blocksOf(json, message, SERVER_CALLS), "id") };
    }
  },
};

function blocksOf(json: JsonPlaces, message: NodeId, types: readonly string[]): NodeId[] {
  const content = json.member(message, "content");
  if (content === undefined || json.kindOf(content) !== "array") return [];
  return json.children(content).filter((block) => types.includes(json.stringMember(block, "type") ?? ""));
}

function idsOf(json: JsonPlaces, blocks: readonly NodeId[], key: string): string[] {
  return blocks.flatMap((block) => json.stringMember(block, key) || []);
}

class MessagesReader implements TypedEventReader {
  readonly #calls = new StepCalls();
  readonly #serverIds: unknown[] = [];

  read(type: unknown, event: Readonly<Record<string, unknown>>): EventReading {
    switch (type) {
      case "content_block_delta": {
        const delta = event["delta"];
        return isRecord(delta) && delta["type"] === "text_delta" ? readingOf(textOf(delta["text"])) : NOTHING;
      }
      case "content_block_start":
        return isRecord(event["content_block"]) ? this.#readStart(event["content_block"]) : NOTHING;
      case "message_delta": {
        const delta = event["delta"];
        const isPaused = isRecord(delta) && delta["stop_reason"] === "pause_turn";
        return isPaused ? readingOf("", this.#calls.add(...this.#serverIds)) : NOTHING;
      }
      case "message_stop":
        return readingOf("", [], this.#calls.end());
      case "error":
        return FAILED;
      default:
        return NOTHING;
    }
  }

  #readStart(block: Block): EventReading {
    if (isOfType(block, SERVER_CALLS) && this.#serverIds.length < SERVER_IDS_MAX) {
      this.#serverIds.push(block["id"]);
    }
    return readingOf(blockText(block), block["type"] === "tool_use" ? this.#calls.add(block["id"]) : []);
  }
}

/** As many as one step can make in practice. */
const SERVER_IDS_MAX = 256;

function isOfType(block: Block, types: readonly string[]): boolean {
  return types.includes(textOf(block["type"]));
}

function blockText(block: Block): string {
  return block["type"] === "text" ? textOf(block["text"]) : "";
}
