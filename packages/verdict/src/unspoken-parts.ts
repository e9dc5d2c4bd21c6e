import { CodeFinder } from "./code-spans.ts";
import { isOrdinaryWord, type Tag, TagReader, UNSPOKEN_TOKEN } from "./unspoken-tags.ts";

/** The channels of some models: what isn't on the channel `final` is for nobody's eyes. */
const CHANNEL =
  /<\|channel\|?>\s*(?:analysis|commentary|thought)\b[\s\S]*?(?:<\|(?:end|call|return)\|>|<channel\|>|(?=<\|channel\|>\s*final)|$(?![\s\S]))|^\s*analysis(?=\p{Lu})[\s\S]*?assistantfinal/gu;
/**
 * Data about the text, which viewers of Markdown don't show. It stands at the beginning only. A line matches in one way only: with
 * two ways for each line, twenty lines without an end would take days.
 */
const FRONT_MATTER =
  /^\s*---[ \t]*\n(?:[\w-]{1,40}:[^\n]{0,1000}\n|[ \t]+(?:[^ \t\n][^\n]{0,1000})?\n|-[ \t][^\n]{1,1000}\n){1,100}---[ \t]*(?:\n|$)/;
/** Agents think in plain text, and mark the beginning of what is for the reader. */
const AGENT_THOUGHT = /^\s*Thought:[\s\S]*?\nFinal Answer:/;
const AGENT_ACTION = /^Action:[^\n]{1,200}\nAction Input:[\s\S]*?(?=\n\n|\nObservation:|$(?![\s\S]))/gm;

/**
 * An answer without what a chat takes out before it shows the rest: the model's reasoning, calls of tools in tags, and
 * comments.
 *
 * 1. A part without an end goes on to the end of the answer.
 * 2. If only the end of a reasoning is there, all before it is reasoning: some servers send the first tag themselves.
 * 3. A tag of reasoning within a sentence is text if it stands in quotes or has no end: the answer writes about tags. So is a tool's
 *    tag whose name is an ordinary word: `<action>` is a placeholder, and `Array<Function>` a type.
 * 4. In code, tags and comments are text. Within a reasoning they aren't: its code may be cut off.
 * 5. The work is linear in the length of the answer.
 */
export function withoutUnspokenParts(answer: string): string {
  const text = answer
    .replace(/\r\n?/g, "\n")
    .replace(FRONT_MATTER, "")
    .replace(CHANNEL, "\n")
    .replace(AGENT_THOUGHT, "")
    .replace(AGENT_ACTION, "");
  const code = new CodeFinder(text);
  const tags = new TagReader(text);
  let kept = "";
  let from = 0;
  const pattern = new RegExp(UNSPOKEN_TOKEN);
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const end = codeEnd(code, match);
    const read = tags.read(match);
    const tag = read !== undefined && isWrittenAbout(text, match, read, tags) ? undefined : read;
    if (end !== undefined) {
      pattern.lastIndex = end;
    } else if (match.groups?.["comment"] !== undefined || tag?.isEnd === false) {
      kept += text.slice(from, match.index);
      from = tag === undefined ? commentEnd(text, match.index) : tags.partEnd(tag, pattern.lastIndex);
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

/** How much of a line before a tag is looked at. */
const LINE_CHARS_MAX = 200;

function isWrittenAbout(
  text: string,
  { index, 0: found }: RegExpExecArray,
  tag: Tag,
  tags: TagReader,
): boolean {
  const end = index + found.length;
  if (tag.kind === "tool" && !isOrdinaryWord(tag)) {
    return false;
  }
  if (
    /["'\u201c\u201d\u2018\u2019\u00ab\u00bb\u201e\u300c\u300d]{2}/.test(`${text[index - 1]}${text[end]}`)
  ) {
    return true;
  }
  const line =
    text
      .slice(Math.max(0, index - LINE_CHARS_MAX), index)
      .split("\n")
      .at(-1) ?? "";
  return !tag.isEnd && /\p{L}/u.test(line) && !tags.hasEnd(tag, end);
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
