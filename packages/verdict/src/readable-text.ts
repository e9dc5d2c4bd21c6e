import { normalizable } from "@adrelay/core";
import { decodeHTML } from "entities";

/** NFKD can make a text several times as long. No ordinary answer that fits into a body needs more characters than this. */
const READ_CHARS_MAX = 2_200_000;
const CHUNK_CHARS = 65_536;

/** Marks the end of a paragraph, heading or list item in a readable text. No name goes across it. */
export const PARAGRAPH_BREAK = "\u2029";

/**
 * Stands before a number that a bracket, a dash, the sign of a currency or the like parts from what is before it. In "Drift (2 kg)"
 * the number is no part of the name, as it may be in "Drift 2".
 */
export const APART = "(";
/** All that is neither a letter, a digit, the end of a phrase nor a mark. */
const UNREAD = /[^\p{L}\p{M}\p{N}.,;:!?|\u2029\u3001\u3002\u0964\ue000-\ue009]+/gu;
/** A hyphen between a word and a number joins them: "Tempo-3". */
const PARTING = /[\p{Ps}\p{S}\u2012-\u2015\u2022\u00b7]|\s\p{Pd}/u;
const DIGIT = /\p{N}/u;

/** Tags that models write inside a sentence. Other angle brackets may hold the name itself. */
const INLINE_TAG = /<\/?(?:a|b|br|code|em|i|mark|span|strong|sub|sup|u)\b[^<>]{0,256}>/gi;
/** `[text](target "title")` and `[text][label]`: a reader sees only the text. */
const LINK = /!?\[([^[\]]{0,400})\](?:\([^()\s[\]]{0,2048}(?:\s"[^"[\]]{0,200}")?\)|\[[^[\]]{0,100}\])/g;
const CITATION = /\[\^?\d{1,3}\]/g;
/**
 * Trademark signs, footnote digits and emoji selectors are not part of a name, but NFKD would turn them into letters
 * and digits.
 */
const MARKS = /[\u2122\u2120\u00ae\u00a9\u00b9\u00b2\u00b3\u2070-\u209f]|\ufe0e|\ufe0f/gu;
const LABEL =
  /#(?:ad|anzeige|publi|pub|pr)\b|[([（【［][\s\ue000-\ue009]{0,6}(?:ad|ads|anz\.?|anzeige|annonce|publi|pub|pr)[\s\ue000-\ue009]{0,6}[)\]）】］]/giu;
/** A mail address at a company's domain is no mention of its product. */
const MAIL = /(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/g;
const HEADING = /^([ \t]{0,3}#{1,6} [^\n]{0,500})\n/gm;
const PARAGRAPH_END = /\n[ \t>]*\n[\n \t>]*/g;
const ITEM_START = /\n[ \t>]*(?=(?:[-*+•–]|\d{1,3}[.)]|#{1,6})[ \t])/g;

/**
 * The words of a name, or of a text whose Markdown and HTML aren't rendered, in the form of `searchable`. Of markup it
 * knows only links and tags within a line.
 */
export function readable(text: string): string {
  return searchable(withoutMarkup(text));
}

/** A text without links' targets and without tags within a line. Its character references are decoded. */
export function withoutMarkup(text: string): string {
  return decodeHTML(text.replace(LINK, "$1").replace(INLINE_TAG, ""));
}

/**
 * A text as its reader sees it, in a form that is easy to search: no invisible characters, no accents on Latin letters,
 * digits of any script as 0 to 9, one blank between words. Punctuation that ends a phrase stays, and so do the case and
 * the marks of marks.ts. A number that isn't joined to the word before it begins with APART.
 */
export function searchable(text: string): string {
  return plainCharacters(withBreaks(withoutSigns(text)))
    .replace(/(\p{L})[-\u2010]\n[ \t>]*(?=\p{L})/gu, "$1")
    .replace(/&+| \+ /g, " and ")
    .replace(/(?<=\p{L})\+(?![\p{L}\p{N}+])/gu, " Plus")
    .replace(UNREAD, (signs, at: number, whole: string) =>
      PARTING.test(signs) && DIGIT.test(whole.charAt(at + signs.length)) ? ` ${APART}` : " ",
    )
    .replace(/ ?\u2029[ \u2029]*/g, PARAGRAPH_BREAK);
}

/** Removes what is no part of a name, but would be taken for letters or digits of it. */
export function withoutSigns(text: string): string {
  // A label in brackets becomes a word, since brackets are removed: "(ad)" is a label, but a bare "ad" may be anything.
  return text
    .replace(CITATION, " ")
    .replace(LABEL, (label) => ` Sponsored ${label.replace(/[^\ue000-\ue009]/g, "")}`)
    .replace(MAIL, " ")
    .replace(MARKS, "");
}

function withBreaks(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(HEADING, `$1${PARAGRAPH_BREAK}`)
    .replace(PARAGRAPH_END, PARAGRAPH_BREAK)
    .replace(ITEM_START, PARAGRAPH_BREAK);
}

function plainCharacters(text: string): string {
  return normalized(text, "NFKD")
    .replace(/(\p{Script=Latin})\p{M}+/gu, "$1")
    .normalize("NFC")
    .replace(/[\p{Cf}*_~`\\]/gu, "")
    .replace(/[\u0966-\u096f]/g, (digit) => String(digit.charCodeAt(0) - 0x966))
    .replace(/[\u0660-\u0669]/g, (digit) => String(digit.charCodeAt(0) - 0x660));
}

/** Normalizes a text in chunks, and stops at READ_CHARS_MAX if the text grows too long. */
export function normalized(text: string, form: "NFKC" | "NFKD"): string {
  const read = normalizable(text);
  let result = "";
  for (let from = 0; from < read.length && result.length < READ_CHARS_MAX; from += CHUNK_CHARS) {
    result += read.slice(from, from + CHUNK_CHARS).normalize(form);
  }
  return result.slice(0, READ_CHARS_MAX);
}
