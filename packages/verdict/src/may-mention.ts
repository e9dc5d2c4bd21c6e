import type { TurnAd } from "@adrelay/core";
import { bareHost } from "./domains.ts";
import { wordOfEachMention } from "./name-patterns.ts";

/** What can put other letters into a word or take some out of it: tags, character references, links, JSON, mail addresses, "Vita+". */
const MARKUP = /[<&[{@+]/;
/** Where an address may begin that isn't the page's own, but of its domain. */
const ADDRESS = /http|www/;
/**
 * All but ASCII, common Latin letters, blanks, dashes, quotes and emoji. Such a character may be read as Latin letters, or not be
 * seen.
 */
const OTHER_CHARACTER =
  /[^\0-\x7f\u00a0\u00c0-\u0131\u0141-\u0148\u014a-\u017e\u2010-\u2015\u2018-\u201f\u2022\u2026\u202f\u20ac\u{1f300}-\u{1faff}]/u;
const NO_LETTERS = /[^a-z]+/g;

/**
 * Whether a text may mention an ad. False only if `judgeAnswer` would say `no_ad_used`: what can't be ruled out by a quick look is
 * left to the search, which takes ten times as long.
 */
export function mayMention(text: string, { productName, landingUrl = "" }: TurnAd): boolean {
  const word = wordOfEachMention(productName);
  const host = bareHost(URL.parse(landingUrl)?.hostname ?? "");
  const isPlainHost = /^[\w.-]*$/.test(host) && !host.includes("xn--");
  if (word === undefined || !isPlainHost || MARKUP.test(text) || OTHER_CHARACTER.test(text)) {
    return true;
  }
  // A name or an address may have marks of Markdown, blanks and breaks in it.
  const letters = lettersOf(text);
  const hasDomain = host !== "" && (letters.includes(lettersOf(host)) || ADDRESS.test(letters));
  return letters.includes(word) || hasDomain;
}

/** Letters with accents count as those without. */
function lettersOf(text: string): string {
  return text.normalize("NFKD").toLowerCase().replace(NO_LETTERS, "");
}
