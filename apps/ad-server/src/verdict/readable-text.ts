import { decodeHTML } from "entities";

/** NFKD can make a text 18 times as long; no answer that a body has room for needs more than this. */
const READ_CHARS_MAX = 2_200_000;
const PORTION_CHARS = 65_536;

/** The end of a paragraph, a heading or a list's item in a readable text: no name goes across it. */
export const BREAK = "\u2029";

/** Tags that models put inside a sentence; other angle brackets may hold the name itself. */
const INLINE_TAG = /<\/?(?:a|b|br|code|em|i|mark|span|strong|sub|sup|u)\b[^<>]{0,256}>/gi;
/** `[text](target "title")` and `[text][label]`: a reader sees the text. */
const LINK = /!?\[([^[\]]{0,400})\](?:\([^()\s[\]]{0,2048}(?:\s"[^"[\]]{0,200}")?\)|\[[^[\]]{0,100}\])/g;
const CITATION = /\[\^?\d{1,3}\]/g;
/** Trademarks, footnotes and the emoji selector are no part of a name; NFKD would make letters and digits of them. */
const MARKS = /[\u2122\u2120\u00ae\u00a9\u00b9\u00b2\u00b3\u2070-\u209f]|\ufe0e|\ufe0f/gu;
const LABEL =
  /#(?:ad|anzeige|publi|pub|pr)\b|[([（【［]\s{0,3}(?:ad|ads|anz\.?|anzeige|annonce|publi|pub|pr)\s{0,3}[)\]）】］]/giu;
/** A mail address names its host, not what the host is known for. */
const MAIL = /(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/g;
const HEADING = /^([ \t]{0,3}#{1,6} [^\n]{0,500})\n/gm;
const PARAGRAPH_END = /\n[ \t>]*\n[\n \t>]*/g;
const ITEM_START = /\n[ \t>]*(?=(?:[-*+•–]|\d{1,3}[.)]|#{1,6})[ \t])/g;

/**
 * A text as its reader sees it: without markup and invisible characters, Latin letters without accents,
 * digits of any script as 0 to 9, words with one blank in between, and the marks that end a phrase. Case stays.
 */
export function readable(text: string): string {
  return plainCharacters(withBreaks(withoutMarkup(text)))
    .replace(/(\p{L})[-\u2010]\n[ \t>]*(?=\p{L})/gu, "$1")
    .replace(/&+| \+ /g, " and ")
    .replace(/(?<=\p{L})\+(?![\p{L}\p{N}+])/gu, " Plus")
    .replace(/[^\p{L}\p{M}\p{N}.,;:!?|\u2029\u3001\u3002\u0964]+/gu, " ");
}

function withoutMarkup(text: string): string {
  // A label in brackets gets a word of its own, since brackets go: "(ad)" marks, "ad" may be anything.
  return decodeHTML(text.replace(LINK, "$1").replace(CITATION, " ").replace(INLINE_TAG, ""))
    .replace(LABEL, " Sponsored ")
    .replace(MAIL, " ")
    .replace(MARKS, "");
}

function withBreaks(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(HEADING, `$1${BREAK}`)
    .replace(PARAGRAPH_END, BREAK)
    .replace(ITEM_START, BREAK);
}

function plainCharacters(text: string): string {
  return normalized(text, "NFKD")
    .replace(/(\p{Script=Latin})\p{M}+/gu, "$1")
    .normalize("NFC")
    .replace(/[\p{Cf}*_~`\\]/gu, "")
    .replace(/[\u0966-\u096f]/g, (digit) => String(digit.charCodeAt(0) - 0x966))
    .replace(/[\u0660-\u0669]/g, (digit) => String(digit.charCodeAt(0) - 0x660));
}

/** Portion by portion, so that a text that would grow beyond all bounds is left where it does. */
export function normalized(text: string, form: "NFKC" | "NFKD"): string {
  let result = "";
  for (let from = 0; from < text.length && result.length < READ_CHARS_MAX; from += PORTION_CHARS) {
    result += text.slice(from, from + PORTION_CHARS).normalize(form);
  }
  return result.slice(0, READ_CHARS_MAX);
}
