import { isDisclosed, NEAR_CHARS } from "./disclosure.ts";
import { findLinks, linkText } from "./landing-link.ts";
import { type AdvertisedProduct, type NamePatterns, namePatterns } from "./name-patterns.ts";
import { readable } from "./readable-text.ts";

export type { AdvertisedProduct } from "./name-patterns.ts";

/** What became of the ad in an answer. `disclosed`: it is marked as an ad near a mention. */
export type Judgment =
  | { readonly verdict: "ok"; readonly disclosed: boolean }
  | { readonly verdict: "no_ad_used" };

interface Span {
  readonly start: number;
  readonly end: number;
}

/** Paraphrases are looked for in this much of an answer: each needs a look around. Names and links in all of it. */
const PARAPHRASE_CHARS_MAX = 200_000;
/** How far before a short name its maker may stand: a sentence or three. */
const MAKER_CHARS = 300;
/** Mentions whose neighbourhood is searched for a label. */
const MENTIONS_MAX = 50;

/**
 * Judges an answer: `ok` if it mentions the product by its name, a clear paraphrase of its name or a link to
 * its page. A mention is a mention, also where the answer advises against the product or quotes the user.
 *
 * 1. Names are looked for as a reader sees them, and must stand for themselves: not within a longer word or
 *    number, not across a phrase's end, and not as the beginning of another model's name.
 * 2. Common words of a name ("a family plan") are no mention without the maker beside them.
 * 3. The work is linear in the answer: every look ahead or back has a bound.
 */
export function judgeAnswer(answer: string, product: AdvertisedProduct): Judgment {
  const text = readable(answer);
  const names = findNames(text, namePatterns(product));
  if (names.some((span) => isDisclosed(text, span))) {
    return { verdict: "ok", disclosed: true };
  }
  const linked = linkText(answer);
  const links = findLinks(linked, product.landingUrl).slice(0, MENTIONS_MAX);
  if (names.length === 0 && links.length === 0) {
    return { verdict: "no_ad_used" };
  }
  return { verdict: "ok", disclosed: links.some((link) => isLinkDisclosed(linked, link)) };
}

function findNames(text: string, { name, tied, short }: NamePatterns): Span[] {
  const names = spansOf(text, name);
  if (names.length > 0) {
    return names;
  }
  const beginning = text.slice(0, PARAPHRASE_CHARS_MAX);
  const paraphrases = tied === undefined ? [] : spansOf(beginning, tied);
  if (paraphrases.length > 0 || short === undefined) {
    return paraphrases;
  }
  return spansOf(beginning, short.rest).filter(({ start }) =>
    short.maker.test(beginning.slice(Math.max(0, start - MAKER_CHARS), start)),
  );
}

function spansOf(text: string, pattern: RegExp): Span[] {
  const spans: Span[] = [];
  for (const { 0: found, index } of text.matchAll(pattern)) {
    spans.push({ start: index, end: index + found.length });
    if (spans.length === MENTIONS_MAX) {
      break;
    }
  }
  return spans;
}

function isLinkDisclosed(linked: string, { start, end }: Span): boolean {
  const before = readable(linked.slice(Math.max(0, start - NEAR_CHARS), start));
  const text = `${before}${readable(linked.slice(start, end + NEAR_CHARS))}`;
  return isDisclosed(text, { start: before.length, end: before.length });
}
