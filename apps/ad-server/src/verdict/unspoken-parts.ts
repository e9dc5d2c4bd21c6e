import { CodeFinder } from "./code-spans.ts";
import { TagReader, UNSPOKEN_TOKEN } from "./unspoken-tags.ts";

/** The channels of some models: what isn't on the channel `final` is for nobody's eyes. */
const CHANNEL =
  /<\|channel\|?>\s*(?:analysis|commentary|thought)\b[\s\S]*?(?:<\|(?:end|call|return)\|>|<channel\|>|(?=<\|channel\|>\s*final)|$(?![\s\S]))|^\s*analysis(?=\p{Lu})[\s\S]*?assistantfinal/gu;
/** Agents think in plain text, and mark the beginning of what is for the reader. */
const AGENT_THOUGHT = /^\s*Thought:[\s\S]*?\nFinal Answer:/;
const AGENT_ACTION = /^Action:[^\n]{1,200}\nAction Input:[\s\S]*?(?=\n\n|\nObservation:|$(?![\s\S]))/gm;

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
  const pattern = new RegExp(UNSPOKEN_TOKEN);
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const end = codeEnd(code, match);
    const tag = tags.read(match);
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
