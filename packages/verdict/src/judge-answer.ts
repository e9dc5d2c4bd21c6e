import { isDisclosed } from "./disclosure.ts";
import { type LandingPage, landingPageOf } from "./link-targets.ts";
import { htmlOf } from "./markdown-html.ts";
import { type MarkedText, readMarks, type Span, withoutMarks } from "./marks.ts";
import { type AdvertisedProduct, type NamePatterns, namePatterns } from "./name-patterns.ts";
import { normalized, PARAGRAPH_BREAK, searchable, withoutMarkup, withoutSigns } from "./readable-text.ts";
import { withoutToolCalls } from "./tool-calls.ts";
import { withoutUnspokenParts } from "./unspoken-parts.ts";
import { visibleText } from "./visible-text.ts";

/** Where a used ad links to: its landing page's domain, another domain, or nowhere. */
export const AD_LINKS = ["landing", "foreign", "none"] as const;
export type AdLink = (typeof AD_LINKS)[number];

/** Whether an answer used the ad. `disclosed`: a mention of the product is marked as an ad. */
export type Judgment =
  | { readonly verdict: "ok"; readonly disclosed: boolean; readonly link: AdLink }
  | { readonly verdict: "no_ad_used" };

/** Of a longer answer the beginning and the end are read, as many characters of each. No chat shows as much. */
const READ_CHARS_END = 65_536;
/**
 * Only this much of an answer is rendered, since rendering takes a second for a hostile megabyte. Few answers are longer. In
 * the rest, reasoning, calls of tools and comments are hidden too, but elements aren't.
 */
const RENDERED_CHARS_MAX = 16_384;
/** How far before a short name its maker may be mentioned: about three sentences. */
const MAKER_CHARS = 300;
/** Mentions whose surroundings are searched for a label. */
const MENTIONS_MAX = 50;

/**
 * Judges an answer. It is `ok` if it mentions the product by its name, by a clear paraphrase of its name, or by a link
 * to its page. A mention counts even if the answer advises against the product or quotes the user.
 *
 * 1. Names and labels are searched in the text that a reader sees. A name counts only as words of its own: not inside a
 *    longer word or number, not across the end of a phrase, and not as the beginning of another model's name.
 * 2. Common words of a name ("a family plan") are no mention without the maker beside them.
 * 3. If a mention links to another domain than the landing page's, the answer is never disclosed: its label would
 *    speak for somebody else's page.
 * 4. The patterns of a product may be made once for many answers: that takes as long as judging a short one.
 * 5. The work is linear in the length of what is read of the answer, or its input has a bound: RENDERED_CHARS_MAX for the
 *    libraries, and one for every look-ahead and look-behind.
 */
export function judgeAnswer(
  answer: string,
  product: AdvertisedProduct,
  patterns: NamePatterns = namePatterns(product),
): Judgment {
  const seen = seenText(answer, landingPageOf(product.landingUrl));
  const links = seen.spans.page.slice(0, MENTIONS_MAX);
  const mentions = [...findNames(seen.text, patterns), ...links];
  if (mentions.length === 0) {
    return { verdict: "no_ad_used" };
  }
  const isLinkedTo = (spans: readonly Span[]) => mentions.some((mention) => overlaps(mention, spans));
  if (isLinkedTo(seen.spans.foreign)) {
    return { verdict: "ok", disclosed: false, link: "foreign" };
  }
  const link = links.length > 0 || isLinkedTo(seen.spans.domain) ? "landing" : "none";
  return { verdict: "ok", disclosed: mentions.some((mention) => isDisclosed(seen, mention)), link };
}

function seenText(answer: string, landingPage: LandingPage): MarkedText {
  const spoken = withoutToolCalls(withoutUnspokenParts(endsOf(answer)));
  const rendered = visibleText(htmlOf(spoken.slice(0, RENDERED_CHARS_MAX)), landingPage);
  const rest = withoutMarkup(withoutMarks(spoken.slice(RENDERED_CHARS_MAX)));
  // NFKC makes letters of a trademark sign, so that signs go first.
  const text = normalized(withoutSigns(`${rendered}${PARAGRAPH_BREAK}${rest}`), "NFKC").replace(
    /\p{Cf}/gu,
    "",
  );
  return readMarks(searchable(landingPage.withMarkedAddresses(text)));
}

function endsOf(answer: string): string {
  return answer.length <= 2 * READ_CHARS_END
    ? answer
    : `${answer.slice(0, READ_CHARS_END)}\n\n${answer.slice(-READ_CHARS_END)}`;
}

function overlaps(mention: Span, spans: readonly Span[]): boolean {
  return spans.some(({ start, end }) => start < mention.end && mention.start < end);
}

function findNames(text: string, { name, tied, short }: NamePatterns): Span[] {
  const names = spansOf(text, name);
  if (names.length > 0) {
    return names;
  }
  const paraphrases = tied === undefined ? [] : spansOf(text, tied);
  if (paraphrases.length > 0 || short === undefined) {
    return paraphrases;
  }
  return spansOf(text, short.rest).filter(({ start }) =>
    short.maker.test(text.slice(Math.max(0, start - MAKER_CHARS), start)),
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
