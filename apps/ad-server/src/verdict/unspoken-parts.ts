import { CodeFinder } from "./code-spans.ts";

/**
 * Names of tags around a model's reasoning, alone or as part of a longer name ("seed:think", "begin_of_thought"), in
 * the languages of the word vectors.
 */
const REASONING_WORDS =
  "think|thinking|thoughts?|reason|reasoning|reflect|reflection|reflexion|scratch|scratchpad|monologue|cot|analysis|rationale|critique|deliberation|planning|introspection|brainstorm|denken|gedanken|gedankengang|überlegung|überlegungen|nachdenken|begründung|pensée|pensées|réflexion|raisonnement|pensamiento|pensamientos|pensar|razonamiento|reflexión|pensamento|pensamentos|raciocínio|reflexão|सोच|विचार|तर्क|चिंतन|思考|推論|考え|考察";
const REASONING_NAME = new RegExp(
  `(?<![\\p{L}\\p{M}])(?:ant)?(?:${REASONING_WORDS})(?![\\p{L}\\p{M}])`,
  "iu",
);
/** Names that mean this only if they are the whole name. */
const INNER_NAME = /^(?:inner|internal|private|hidden|plan|system[_-]?reminder)$/i;
const TOOL_NAME =
  /^(?:\w+:)?(?:(?:tools?|functions?|plugin)_?(?:calls?|uses?|code|results?|response|responses|output|outputs|request|invocation|invoke|input)|tools?|function|invoke|python_tag|use_mcp_tool|function=.*|action(?:_input)?|observation|execute(?:_\w+)?|search_quer(?:y|ies))$/i;

/** Whether the name of a tag is for reasoning. */
export function isReasoningName(name: string): boolean {
  return REASONING_NAME.test(name.replaceAll("_", " ")) || INNER_NAME.test(name);
}

const NAME = "[\\p{L}][\\p{L}\\p{M}\\p{N}:_.=\\u2581-]{0,60}";
/**
 * `<think>`, `<|think|>`, `[THINK]`, `◁think▷` and their ends, comments, and the backticks of code. The names of groups
 * are repeated, since exactly one alternative applies.
 */
const TOKEN = new RegExp(
  [
    "(?<comment><!--)",
    `<(?<close>/?)(?<name>${NAME})(?:\\s[^<>]{0,500})?(?<!/)>`,
    `<[|\\uff5c](?<close>/?)(?<name>${NAME})[|\\uff5c]>`,
    `\\u25c1(?<close>/?)(?<name>${NAME})\\u25b7`,
    `(?<bracket>\\[)(?<close>/?)(?<name>${NAME})\\](?!\\()`,
    "(?<fence>^ {0,3}(?:`{3,}|~{3,}))",
    "(?<ticks>`+)",
  ].join("|"),
  "gmu",
);
/** The channels of some models: what isn't on the channel `final` is for nobody's eyes. */
const CHANNEL =
  /<\|channel\|>\s*(?:analysis|commentary)\b[\s\S]*?(?:<\|(?:end|call|return)\|>|(?=<\|channel\|>\s*final)|$(?![\s\S]))|^\s*analysis(?=\p{Lu})[\s\S]*?assistantfinal/gu;
/** Agents think in plain text, and mark the beginning of what is for the reader. */
const AGENT_THOUGHT = /^\s*Thought:[\s\S]*?\nFinal Answer:/;
const AGENT_ACTION = /^Action:[^\n]{1,200}\nAction Input:[\s\S]*?(?=\n\n|\nObservation:|$(?![\s\S]))/gm;

interface Tag {
  readonly kind: "reasoning" | "tool";
  readonly name: string;
  readonly isEnd: boolean;
}

/**
 * An answer without what a chat takes out before it shows the rest: the model's reasoning, calls of tools in tags, and
 * comments.
 *
 * 1. A part without an end goes on to the end of the answer.
 * 2. If only the end of a reasoning is there, all before it is reasoning: some servers send the first tag themselves.
 * 3. In code, tags and comments are text. Within a reasoning they aren't: its code may be cut off.
 * 4. The work is linear in the length of the answer.
 */
export function withoutUnspokenParts(answer: string): string {
  const text = answer
    .replace(/\r\n?/g, "\n")
    .replace(CHANNEL, "\n")
    .replace(AGENT_THOUGHT, "")
    .replace(AGENT_ACTION, "");
  const code = new CodeFinder(text);
  const tags = new TagReader(text);
  let kept = "";
  let from = 0;
  const pattern = new RegExp(TOKEN);
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const end = codeEnd(code, match);
    const tag = tags.read(match);
    if (end !== undefined) {
      pattern.lastIndex = end;
    } else if (match.groups?.["comment"] !== undefined || tag?.isEnd === false) {
      kept += text.slice(from, match.index);
      from = tag === undefined ? commentEnd(text, match.index) : partEnd(tags, tag, pattern.lastIndex);
      // A line stays a line, so that a table or a list keeps its form.
      kept += text.slice(match.index, from).includes("\n") ? "\n" : " ";
      pattern.lastIndex = from;
    } else if (tag?.kind === "reasoning") {
      kept = "";
      from = pattern.lastIndex;
    }
  }
  return kept + text.slice(from);
}

function codeEnd(code: CodeFinder, { index, groups, 0: found }: RegExpExecArray): number | undefined {
  if (groups?.["fence"] !== undefined) {
    return code.fenceAt(index)?.end;
  }
  return groups?.["ticks"] === undefined ? undefined : code.inlineEnd(index, found);
}

/** `<!-->` is a whole comment. */
function commentEnd(text: string, start: number): number {
  const end = text.indexOf("-->", start + 2);
  return end === -1 ? text.length : end + 3;
}

/** Reads the matches of TOKEN in one text. */
class TagReader {
  readonly text: string;
  /** Whether the text has the end of a tag in square brackets, by the tag's name. */
  readonly #hasEnd = new Map<string, boolean>();

  constructor(text: string) {
    this.text = text;
  }

  /** The tag of a match; undefined if it is none, or not one around an unspoken part. */
  read({ groups }: RegExpExecArray): Tag | undefined {
    const written = groups?.["name"];
    if (written === undefined) {
      return undefined;
    }
    const plain = written.replaceAll("\u2581", "_");
    const name = plain.replace(/^(?:begin|start|end)(?:_of)?_|_(?:begin|start|end)$/i, "");
    const kind = TOOL_NAME.test(name) ? "tool" : isReasoningName(name) ? "reasoning" : undefined;
    const isEnd = groups?.["close"] === "/" || /^end_|_end$/i.test(plain);
    // "[analysis]" is an ordinary word in brackets, unless its end follows.
    const isWord = groups?.["bracket"] !== undefined && !isEnd && !this.#isBracketTag(name);
    return kind === undefined || isWord ? undefined : { kind, name: name.toLowerCase(), isEnd };
  }

  #isBracketTag(name: string): boolean {
    const hasEnd = this.#hasEnd.get(name) ?? this.text.includes(`[/${name}]`);
    this.#hasEnd.set(name, hasEnd);
    return hasEnd || /^(?:THINK|TOOL_CALLS)$/.test(name);
  }
}

/**
 * Where a part ends. Parts may be nested, but a model also writes about its own tags: if too few ends follow, the last
 * one counts. The end may have another name of the same kind, if no other end is there.
 */
function partEnd(tags: TagReader, tag: Tag, from: number): number {
  const pattern = new RegExp(TOKEN);
  pattern.lastIndex = from;
  let depth = 1;
  let lastEnd: number | undefined;
  let otherEnd: number | undefined;
  for (let match = pattern.exec(tags.text); match !== null; match = pattern.exec(tags.text)) {
    const other = tags.read(match);
    if (other?.name === tag.name && other.kind === tag.kind) {
      depth += other.isEnd ? -1 : 1;
      lastEnd = other.isEnd ? pattern.lastIndex : lastEnd;
    } else if (other?.kind === tag.kind && other.isEnd) {
      otherEnd ??= pattern.lastIndex;
    }
    if (depth === 0) {
      break;
    }
  }
  return lastEnd ?? otherEnd ?? tags.text.length;
}
