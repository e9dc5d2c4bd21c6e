/** How far a span of code in a line may reach. Longer ones are read as text. */
const INLINE_CHARS_MAX = 300;
/** More backticks than anybody writes. Longer rows are read as text: a pattern must not grow with the answer. */
const TICKS_MAX = 100;
const FENCE = /^ {0,3}(`{3,}|~{3,})([^\n]*)(?:\n|$)/my;

/** A block of code between fences. Places are characters of the text. */
export interface Fence {
  /** What stands after the opening fence, such as `json`. */
  readonly info: string;
  readonly bodyStart: number;
  readonly bodyEnd: number;
  readonly end: number;
}

/**
 * Finds code in a Markdown text, where tags are only text. Each search remembers what it looked for in vain, so that all
 * searches together are linear in the length of the text.
 */
export class CodeFinder {
  readonly #text: string;
  /** By fence character: the shortest fence that is known to have no end. */
  readonly #endless = new Map<string, number>();

  constructor(text: string) {
    this.#text = text;
  }

  /** The block of code that begins at the start of a line; undefined if there is none, or if it has no end. */
  fenceAt(lineStart: number): Fence | undefined {
    FENCE.lastIndex = lineStart;
    const [opening, fence = "", info = ""] = FENCE.exec(this.#text) ?? [];
    const character = fence.slice(0, 1);
    if (opening === undefined || fence.length > TICKS_MAX) {
      return undefined;
    }
    if (fence.length >= (this.#endless.get(character) ?? Number.POSITIVE_INFINITY)) {
      return undefined;
    }
    if (character === "`" && info.includes("`")) {
      return undefined;
    }
    const closing = new RegExp(`^ {0,3}${character}{${fence.length},}[ \\t]*$`, "gm");
    closing.lastIndex = lineStart + opening.length;
    const end = closing.exec(this.#text);
    if (end === null) {
      this.#endless.set(character, fence.length);
      return undefined;
    }
    return {
      info: info.trim(),
      bodyStart: lineStart + opening.length,
      bodyEnd: end.index,
      end: end.index + end[0].length,
    };
  }

  /** The end of the code in a line that begins with these backticks; undefined if it has no end nearby. */
  inlineEnd(start: number, ticks: string): number | undefined {
    if (ticks.length > TICKS_MAX) {
      return undefined;
    }
    const from = start + ticks.length;
    const near = this.#text.slice(from, from + INLINE_CHARS_MAX);
    const [paragraph = ""] = near.split(/\n[ \t]*\n/, 1);
    const end = new RegExp(`(?<!\`)${ticks}(?!\`)`).exec(paragraph);
    return end === null ? undefined : from + end.index + ticks.length;
  }
}
