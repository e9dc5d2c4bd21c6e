import type { Verdict } from "@adrelay/contract";

/**
 * Whether an answer used the product: `ok` if it names it, else `no_ad_used`.
 *
 * The name is looked for as a reader sees it: any width and case, through Markdown emphasis, links and
 * HTML tags, soft line breaks, hyphens and invisible characters. It must stand for itself: not within a
 * longer word or number, and not across the end of a sentence.
 */
export function judgeAnswer(answer: string, productName: string): Verdict {
  return namePattern(productName).test(readable(answer)) ? "ok" : "no_ad_used";
}

/** A neighbour that would make the name part of a longer word. Other scripts write no blank beside it. */
const WORD_PART = "[\\p{Script=Latin}\\p{N}]";

function namePattern(productName: string): RegExp {
  const tokens = readable(productName)
    .split(" ")
    .filter((token) => token !== "")
    .map((token) => token.replace(/[.?|]/g, "\\$&"));
  // "Drifts" and "Drift's" still name the product; "Tempo 3.5" is another than "Tempo 3".
  // "1.Velmora" is a list's item, "1.5" is a number.
  const before = /^\p{N}/u.test(tokens[0] ?? "") ? "(?<!\\d[.,])" : "";
  return new RegExp(`(?<!${WORD_PART})${before}${tokens.join(" ?")}s?(?!${WORD_PART})(?![.,]\\d)`, "u");
}

/** NFKC can make a text 18 times as long; no answer that a body has room for needs more than this. */
const READ_CHARS_MAX = 3_000_000;

/** Tags that models put inside a sentence; other angle brackets may hold the name itself. */
const INLINE_TAG = /<\/?(?:a|b|br|code|em|i|mark|span|strong|sub|sup|u)\b[^<>]{0,256}>/gi;

/** Reduces a text to lower-case words, single blanks and the marks that end a phrase. */
function readable(text: string): string {
  return (
    text
      .replace(/\]\([^()\s[\]]{0,2048}\)/g, "]")
      .replace(INLINE_TAG, "")
      .replace(/&(?:nbsp|#160|#xa0);/gi, " ")
      .replace(/&(?:amp|#38|#x26);/gi, "&")
      // Trademarks, footnotes and the emoji selector are no part of a name; NFKC would make letters and digits of them.
      .replace(/[\u2122\u2120\u00ae\u00a9\u00b9\u00b2\u00b3\u2070-\u209f]|\ufe0e|\ufe0f/gu, "")
      .normalize("NFKC")
      .slice(0, READ_CHARS_MAX)
      .toLowerCase()
      .replace(/[\p{Cf}*_~`\\]/gu, "")
      .replaceAll("&", " and ")
      .replace(/[^\p{L}\p{M}\p{N}.,;:!?|\u3001\u3002]+/gu, " ")
  );
}
