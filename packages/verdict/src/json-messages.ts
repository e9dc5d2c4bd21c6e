/** Members that hold what a tool is called with. */
const ARGUMENTS = /^(?:arguments|args|parameters|params|input|tool_?input|action_?input|kwargs)$/i;
/** Members that hold the name of a tool. */
const TOOL = /^(?:name|tool|tool_?name|function|function_?name|action|recipient_?name)$/i;
/** Members that hold a call, or several. */
const CALL = /^(?:tool_?calls?|tool_?uses?|function_?calls?)$/i;
/** Values of the member `type` of a call or of its result. */
const CALL_TYPE = /^(?:server_|mcp_)?(?:tool|function)_?(?:calls?|use|result|call_output)$|^function$/i;
/** Members that hold a model's reasoning, and values of the member `type` of such an object. */
const REASONING =
  /^(?:reasoning|reasoning_?(?:content|text|details|steps)?|redacted_?thinking|thinking|thoughts?|thought_?process|chain_?of_?thought|cot|scratch_?pad|reflection|inner_?monologue|internal_?(?:thoughts|reasoning|monologue))$/i;
/** What a search is called with. */
const SEARCH =
  /^(?:q|query|queries|search|search_?(?:query|term)|keywords?|limit|max_?results|top_?[kn]|page|lang(?:uage)?|country|region|filters?)$/i;

/** More levels than any message has. It bounds the recursion. */
const DEPTH_MAX = 50;

type JsonObject = Readonly<Record<string, unknown>>;

/** Objects and arrays only: other JSON is text. */
export function parseJson(text: string): unknown {
  const trimmed = text.trim();
  if (!/^[[{]/.test(trimmed) || !/[\]}]$/.test(trimmed)) {
    return undefined;
  }
  try {
    return JSON.parse(trimmed);
  } catch {
    return undefined;
  }
}

function asObject(value: unknown): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}

/** Whether JSON is a call of a tool, a list of calls, or an object around calls. */
export function isCall(value: unknown, depth = 0): boolean {
  if (depth > DEPTH_MAX) {
    return false;
  }
  if (Array.isArray(value)) {
    return value.length > 0 && value.every((item) => isCall(item, depth + 1));
  }
  const members = Object.entries(asObject(value) ?? {});
  if (members.some(([key, member]) => CALL.test(key) && typeof member === "object" && member !== null)) {
    return true;
  }
  const type = members.find(([key]) => key === "type")?.[1];
  const hasTool = members.some(([key, member]) => TOOL.test(key) && isToolName(member));
  const hasArguments = members.some(([key]) => ARGUMENTS.test(key)) || hasSearchBesideTool(members);
  return (
    (hasTool && hasArguments) || (typeof type === "string" && CALL_TYPE.test(type) && members.length > 1)
  );
}

/**
 * Some calls of searches have their arguments beside the tool's name: {"tool": "search", "q": "shoes"}. With other members,
 * an object is about a tool: {"tool": "hammer", "price": 20}.
 */
function hasSearchBesideTool(members: readonly (readonly [string, unknown])[]): boolean {
  const others = members.filter(([key]) => !/^(?:tool.*|id|type)$/i.test(key));
  return (
    members.some(([key]) => /^tool/i.test(key)) &&
    others.length > 0 &&
    others.every(([key]) => SEARCH.test(key))
  );
}

/** Whether JSON has arguments of a search, and nothing else. */
export function isSearch(value: unknown): boolean {
  const keys = Object.keys(asObject(value) ?? {});
  return keys.length > 0 && keys.every((key) => SEARCH.test(key));
}

/** The name of a tool has no blanks, so that a product with an `input` is no call. */
function isToolName(value: unknown): boolean {
  return typeof value === "string"
    ? /^[\p{L}\p{N}_.:/-]{1,128}$/u.test(value)
    : asObject(value)?.["name"] !== undefined;
}

/**
 * The texts for a reader in a message that is JSON as a whole and has other parts, too: reasoning or calls of tools.
 * Undefined if it has no other parts.
 */
export function spokenTextOf(message: unknown): string | undefined {
  return hasUnspoken(message, 0) ? spokenTexts(message, 0).join("\n\n") : undefined;
}

function hasUnspoken(value: unknown, depth: number): boolean {
  if (depth > DEPTH_MAX || isCall(value, depth)) {
    return depth <= DEPTH_MAX;
  }
  if (Array.isArray(value)) {
    return value.some((item) => hasUnspoken(item, depth + 1));
  }
  return Object.entries(asObject(value) ?? {}).some(
    ([key, member]) => isUnspokenMember(key, member) || hasUnspoken(member, depth + 1),
  );
}

/** A text of reasoning: `{"reasoning_content": "…"}` or `{"type": "thinking", …}`. */
function isUnspokenMember(key: string, member: unknown): boolean {
  return CALL.test(key) || REASONING.test(key) || (key === "type" && REASONING.test(String(member)));
}

function spokenTexts(value: unknown, depth: number): string[] {
  if (typeof value === "string") {
    return [value];
  }
  if (depth > DEPTH_MAX) {
    return [];
  }
  if (Array.isArray(value)) {
    return value.flatMap((item) => spokenTexts(item, depth + 1));
  }
  const members = Object.entries(asObject(value) ?? {});
  const isMessage = members.some(([key]) => CALL.test(key));
  if (
    (!isMessage && isCall(value, depth)) ||
    members.some(([key, member]) => key === "type" && isUnspokenMember(key, member))
  ) {
    return [];
  }
  return members.flatMap(([key, member]) =>
    isUnspokenMember(key, member) ? [] : spokenTexts(member, depth + 1),
  );
}
