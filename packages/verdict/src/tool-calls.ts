import { CodeFinder } from "./code-spans.ts";
import { isCall, isSearch, parseJson, spokenTextOf } from "./json-messages.ts";

const TOOL_INFO = /^(?:tool|function)[_-]?(?:calls?|use|code)\b/i;
/** Text that looks like a call, but is no whole JSON: several calls in a row, or one that is cut off. */
const LOOKS_LIKE_CALL =
  /^[\s[]*\{\s*"(?:id|type|name|tool|tool_?name|function|function_?name|action|recipient_?name)"\s*:[\s\S]{0,500}"(?:arguments|args|parameters|params|input|tool_?input|action_?input)"\s*:/i;

/** A call as some models write it, as code: `[search(query="shoes")]`. */
const CODE_CALL = /^\[?[\w.]{1,100}\((?:\w{1,100}=|\{\s*")[^\n]{0,5000}\)\]?$/;

/**
 * A text without calls of tools in JSON, which no chat shows: the whole answer, a block of code, or a paragraph. Of a
 * message that is JSON as a whole, such as one with `content` and `tool_calls`, the texts stay. Other JSON stays as it
 * is.
 */
export function withoutToolCalls(text: string): string {
  const whole = parseJson(text);
  const spoken = spokenTextOf(whole);
  if (spoken !== undefined) {
    return spoken;
  }
  if (CODE_CALL.test(text.trim()) || isSearch(whole)) {
    return "";
  }
  const code = new CodeFinder(text);
  const kept: string[] = [];
  let from = 0;
  let searchesLeft = SEARCHES_MAX;
  let charsLeft = OBJECTS_CHARS_MAX;
  const pattern = new RegExp(CANDIDATE);
  for (
    let found = pattern.exec(text);
    found !== null && searchesLeft > 0 && charsLeft > 0;
    found = pattern.exec(text)
  ) {
    const candidate = candidateAt(text, found, code);
    if (candidate === undefined) {
      continue;
    }
    searchesLeft -= candidate.kind === "json" ? 1 : 0;
    charsLeft -= candidate.searchedChars ?? 0;
    if (candidate.kind !== "code" && (isCallText(candidate.body) || TOOL_INFO.test(candidate.info))) {
      kept.push(text.slice(from, found.index));
      from = candidate.end;
      pattern.lastIndex = candidate.end;
    } else if (candidate.kind !== "json") {
      pattern.lastIndex = candidate.end;
    }
  }
  kept.push(text.slice(from));
  return kept.join("");
}

/** Where a block of code, code within a line, or an object of JSON begins. */
const CANDIDATE = /^ {0,3}(?<fence>```|~~~)|(?<ticks>`+)|(?:\[\s*)?\{\s*"[\w-]{1,40}"\s*:/gm;
/** How many objects are searched for their ends, how long one may be, and all together. They bound the work. */
const SEARCHES_MAX = 200;
const OBJECT_CHARS_MAX = 20_000;
const OBJECTS_CHARS_MAX = 200_000;

interface Candidate {
  readonly kind: "fence" | "code" | "json";
  readonly body: string;
  readonly info: string;
  readonly end: number;
  /** Of JSON: how far its end was searched for. */
  readonly searchedChars?: number;
}

function candidateAt(text: string, found: RegExpExecArray, code: CodeFinder): Candidate | undefined {
  const { fence, ticks } = found.groups ?? {};
  if (fence !== undefined) {
    const block = code.fenceAt(found.index);
    return block === undefined
      ? undefined
      : { kind: "fence", body: text.slice(block.bodyStart, block.bodyEnd), info: block.info, end: block.end };
  }
  if (ticks !== undefined) {
    const end = code.inlineEnd(found.index, ticks);
    return end === undefined ? undefined : { kind: "code", body: "", info: "", end };
  }
  const { end, searchedChars } = objectEnd(text, found.index);
  return { kind: "json", body: text.slice(found.index, end), info: "", end, searchedChars };
}

/**
 * The end of the object or array that begins here; the end of its paragraph if it is cut off. A string without an end goes on to the
 * end of the text, so that no other string is looked for in it.
 */
function objectEnd(text: string, start: number): { readonly end: number; readonly searchedChars: number } {
  const near = text.slice(start, start + OBJECT_CHARS_MAX);
  let depth = 0;
  for (const { 0: token, index } of near.matchAll(/"(?:[^"\\]|\\.)*(?:"|\\?$)|[[\]{}]/gs)) {
    depth += /^[[{]/.test(token) ? 1 : /^[\]}]/.test(token) ? -1 : 0;
    if (depth === 0 && !token.startsWith('"')) {
      return { end: start + index + 1, searchedChars: index + 1 };
    }
  }
  const paragraph = near.indexOf("\n\n");
  return { end: start + (paragraph === -1 ? near.length : paragraph), searchedChars: near.length };
}

function isCallText(text: string): boolean {
  const value = parseJson(text);
  return value === undefined ? LOOKS_LIKE_CALL.test(text) : isCall(value);
}
