import { PARAGRAPH_BREAK } from "./readable-text.ts";

/**
 * What a mark encloses: a link to the landing page, to another page of its domain or to another domain; an address that
 * is written out; or a part that is shown only after a click.
 */
const MARK_KINDS = ["page", "domain", "foreign", "address", "collapsed"] as const;
export type MarkKind = (typeof MARK_KINDS)[number];

/** Where something is in a text, in characters. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Marks are private-use characters, so that they stay in place while the text around them is normalized. */
const FIRST_MARK = 0xe000;
const ANY_MARK = /[\ue000-\ue009]/g;

export function openMark(kind: MarkKind): string {
  return String.fromCharCode(FIRST_MARK + 2 * MARK_KINDS.indexOf(kind));
}

export function closeMark(kind: MarkKind): string {
  return String.fromCharCode(FIRST_MARK + 2 * MARK_KINDS.indexOf(kind) + 1);
}

/** A text of the answer may contain such characters itself. A reader sees nothing there. */
export function withoutMarks(text: string): string {
  return text.replace(ANY_MARK, " ");
}

/** A searchable text without its marks, and what they enclosed. */
export interface MarkedText {
  readonly text: string;
  readonly spans: Readonly<Record<MarkKind, readonly Span[]>>;
}

/** Takes the marks out of a text. Blanks and breaks that then lie beside each other become one. */
export function readMarks(marked: string): MarkedText {
  const pieces: string[] = [];
  const spans: Record<MarkKind, Span[]> = { page: [], domain: [], foreign: [], address: [], collapsed: [] };
  const open: { readonly kind: MarkKind; readonly start: number; readonly isInLink: boolean }[] = [];
  let length = 0;
  let last = "";
  const append = (piece: string) => {
    const joined = joinable(piece, last);
    if (joined !== "") {
      pieces.push(joined);
      length += joined.length;
      last = joined.slice(-1);
    }
  };
  let from = 0;
  for (const { 0: mark, index } of marked.matchAll(ANY_MARK)) {
    append(marked.slice(from, index));
    from = index + 1;
    const place = mark.charCodeAt(0) - FIRST_MARK;
    const kind = MARK_KINDS[place >> 1] ?? "page";
    if (place % 2 === 0) {
      open.push({ kind, start: length, isInLink: open.some((outer) => isLink(outer.kind)) });
      continue;
    }
    const at = open.findLastIndex((mine) => mine.kind === kind);
    for (const { start, isInLink } of at === -1 ? [] : open.splice(at, 1)) {
      // A reader who follows an address that is the text of a link gets to the link's target.
      if (!(isInLink && kind === "foreign")) {
        spans[kind].push({ start, end: length });
      }
    }
  }
  append(marked.slice(from));
  return { text: pieces.join(""), spans };
}

function isLink(kind: MarkKind): boolean {
  return kind === "page" || kind === "domain" || kind === "foreign";
}

function joinable(piece: string, last: string): string {
  if (last === PARAGRAPH_BREAK) {
    return piece.replace(/^[ \u2029]+/, "");
  }
  return last === " " ? piece.replace(/^ +/, "") : piece;
}
