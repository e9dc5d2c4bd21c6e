/**
 * Finds the last user text among a request's items, and the calls of tools that its last items answer. The dialects classify
 * their items; the order of the items means the same in all of them.
 */
import type { BodyRules, BodySkipReason, ReadRequest } from "./dialect.ts";
import type { JsonPlaces, NodeId } from "./json-places.ts";
import { ROOT } from "./request-rules.ts";

export type Item =
  /** Of the system or the developer: it may stand behind the user's message. */
  | { readonly kind: "instruction" }
  | { readonly kind: "user" }
  /** Results of tools that the client ran, with the ids of their calls. */
  | { readonly kind: "results"; readonly callIds: readonly string[] }
  /** All that a model writes. `pausedIds`: of server tools, by which a paused step is continued. */
  | { readonly kind: "assistant"; readonly pausedIds: readonly string[] };

export interface ItemRules {
  readonly textTypes: readonly string[];
  classify(json: JsonPlaces, item: NodeId): Item;
}

/** Ids of one call that are looked at. A model calls a few tools at once. */
const CALL_IDS_MAX = 128;
/** Members by which a caller tells where a cached prefix ends. */
const CACHE_MARKERS = ["cache_control", "prompt_cache_breakpoint"];
const NO_IDS: readonly string[] = [];

export interface TextQuestion {
  readonly json: JsonPlaces;
  readonly items: readonly NodeId[];
  readonly rules: ItemRules;
  readonly allowsCacheMarked: boolean;
}

export function findUserText(question: TextQuestion): ReadRequest {
  const { json, items, rules } = question;
  const end = findEnd(json, items, rules);
  if (end.kind === "skip") return end;
  // Behind the end are only instructions and results, so the last user's message is before it.
  const userAt = items.findLastIndex((item) => rules.classify(json, item).kind === "user");
  const user = items[userAt];
  const content = user === undefined ? undefined : json.member(user, "content");
  const texts = content === undefined ? [] : textsOf(json, content, rules.textTypes);
  if (texts.length === 0) return skip("no_user_text");
  const isMarked = items.slice(userAt).some((item) => json.hasBelow(item, CACHE_MARKERS));
  if (isMarked && !question.allowsCacheMarked) return skip("cache_marked");
  return adMayGoIn(json, texts, end.answeredCallIds);
}

/** The same in a request whose items are its `messages`. */
export function findInMessages(
  json: JsonPlaces,
  rules: ItemRules,
  { allowsCacheMarked }: Pick<BodyRules, "allowsCacheMarked">,
): ReadRequest {
  if (json.member(ROOT, "cache_control") !== undefined && !allowsCacheMarked) return skip("cache_marked");
  const messages = json.member(ROOT, "messages");
  if (messages === undefined || json.kindOf(messages) !== "array") return skip("no_user_text");
  return findUserText({ json, items: json.children(messages), rules, allowsCacheMarked });
}

/** Of the texts of one message, the ad goes into the last one. `no_user_text` if that isn't a string, or is blank. */
export function adMayGoIn(json: JsonPlaces, texts: readonly NodeId[], answeredCallIds = NO_IDS): ReadRequest {
  const last = texts.at(-1);
  const userText = last === undefined ? undefined : json.string(last);
  if (last === undefined || userText === undefined || isBlank(userText)) return skip("no_user_text");
  const before = texts.slice(0, -1).map((text) => json.string(text) ?? "");
  const messageText = [...before.filter((text) => !isBlank(text)), userText].join("\n\n");
  return { kind: "ad_may_go_in", userText, messageText, place: json.placeOf(last), answeredCallIds };
}

function isBlank(text: string): boolean {
  return text.trim() === "";
}

export function skip(reason: BodySkipReason): Extract<ReadRequest, { kind: "skip" }> {
  return { kind: "skip", reason };
}

type EndOfItems =
  | { readonly kind: "end"; readonly answeredCallIds: readonly string[] }
  | Extract<ReadRequest, { kind: "skip" }>;

/** What the last items are, apart from instructions: a user's message, results of tools, or the assistant's. */
function findEnd(json: JsonPlaces, items: readonly NodeId[], rules: ItemRules): EndOfItems {
  const callIds: string[] = [];
  let hasResults = false;
  for (let at = items.length - 1; at >= 0; at--) {
    const item = rules.classify(json, items[at] ?? 0);
    if (item.kind === "instruction") continue;
    if (item.kind === "results") {
      hasResults = true;
      callIds.push(...item.callIds.slice(0, CALL_IDS_MAX - callIds.length));
      continue;
    }
    if (hasResults) return callIds.length > 0 ? endOf(callIds) : skip("unknown_step");
    if (item.kind === "user") return endOf(NO_IDS);
    return item.pausedIds.length > 0 ? endOf(item.pausedIds.slice(0, CALL_IDS_MAX)) : skip("prefill");
  }
  return skip("no_user_text");
}

function endOf(answeredCallIds: readonly string[]): EndOfItems {
  return { kind: "end", answeredCallIds };
}

/** The content itself if it is a string; of a list, the texts of its text parts. */
function textsOf(json: JsonPlaces, content: NodeId, textTypes: readonly string[]): readonly NodeId[] {
  if (json.kindOf(content) === "string") return [content];
  if (json.kindOf(content) !== "array") return [];
  return json
    .children(content)
    .filter((child) => textTypes.includes(json.stringMember(child, "type") ?? ""))
    .flatMap((part) => json.member(part, "text") ?? []);
}
