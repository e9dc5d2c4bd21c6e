import { decodeHTML } from "entities";
import { formsOfDomain } from "../catalog/landing-url.ts";
import { type AdvertisedProduct, type NamePatterns, namePatterns } from "./name-patterns.ts";
import { normalized, PARAGRAPH_BREAK, readable } from "./readable-text.ts";

/** Whether an answer used the ad. `disclosed`: a mention of the product is marked as an ad. */
export type Judgment =
  | { readonly verdict: "ok"; readonly disclosed: boolean }
  | { readonly verdict: "no_ad_used" };

interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * Paraphrases are searched only in this much of an answer, since each costs a look around. Names and links are
 * searched in all of it.
 */
const PARAPHRASE_CHARS_MAX = 200_000;
/** How far before a short name its maker may be mentioned: about three sentences. */
const MAKER_CHARS = 300;
/** Mentions whose surroundings are searched for a label. */
const MENTIONS_MAX = 50;

/**
 * Judges an answer. It is `ok` if it mentions the product by its name, by a clear paraphrase of its name, or by a link
 * to its page. A mention counts even if the answer advises against the product or quotes the user.
 *
 * 1. Names are searched in the text as a reader sees it. A name counts only as words of its own: not inside a longer
 *    word or number, not across the end of a phrase, and not as the beginning of another model's name.
 * 2. Common words of a name ("a family plan") are no mention without the maker beside them.
 * 3. The work is linear in the length of the answer: every look-ahead and look-behind has a bound.
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

const PATH = "(?::\\d{1,5})?(/[^\\s<>\"'()[\\]|\\u3001\\u3002]{0,2048})?";

/**
 * Where a text from `linkText` links to the landing page. The bare domain counts too, with or without a subdomain.
 * Another page of the domain doesn't count: it may be another product's.
 */
function findLinks(text: string, landingUrl: string): Span[] {
  const landing = URL.parse(landingUrl);
  if (landing === null) {
    return [];
  }
  const domain = landing.hostname.replace(/^www\./, "");
  const host = `(?:${formsOfDomain(domain).join("|").replaceAll(".", "\\.")})`;
  // A mail address, a longer domain or the user part of a URL doesn't link to the domain.
  const pattern = new RegExp(
    `(?<![\\p{Script=Latin}\\p{N}@_-])${host}(?![\\p{Script=Latin}\\p{N}@-]|\\.[\\p{Script=Latin}\\p{N}])${PATH}`,
    "giu",
  );
  return [...text.matchAll(pattern)]
    .filter(([, path = "/"]) => leadsTo(path.toLowerCase(), landing.pathname.toLowerCase()))
    .map(({ 0: link, index }) => ({ start: index, end: index + link.length }));
}

/** A text with its links as a browser would follow them. */
function linkText(text: string): string {
  return normalized(decodeHTML(text), "NFKC").replace(/[\p{Cf}*`\\]/gu, "");
}

function leadsTo(path: string, landingPath: string): boolean {
  const segments = segmentsOf(path.replace(/[?#].*$/, "").replace(/[.,;:!]+$/, ""));
  const page = segmentsOf(landingPath).at(-1);
  return segments.length === 0 || page === undefined || segments.includes(page);
}

function segmentsOf(path: string): string[] {
  return path.split("/").filter((segment) => segment !== "");
}

/** How far a label may be from a mention, in characters of the readable text. */
const NEAR_CHARS = 600;

const JAPANESE = "[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}]";

/**
 * Labels of paid content, without accents. A label that is also an everyday word needs a capital letter or an
 * article.
 */
const LATIN_LABELS = [
  "(?i:sponsored?|sponsors|sponsoring|promoted|paid (?:partnership|placement|promotion|content)|advert|advertis(?:ements?|ed|ing)|advertorial|an advertiser)",
  "(?i:gesponsert\\p{L}{0,2}|werbung|werbeanzeige|werbehinweis|werblich\\p{L}{0,2}|anzeigenhinweis|bezahlte (?:partnerschaft|empfehlung|werbung))",
  "(?i:sponsorise\\p{L}{0,2}|publicite|publicitaire|partenariat remunere|contenu commercial)",
  "(?i:patrocin(?:ad[oa]s?|io)|anuncio|publicidad|publicidade|publicitari[oa]|promocionad[oa]|contenido pagado|conteudo pago|parceria paga|publi)",
  "(?i:sponsorizzat[oa]|pubblicita|gesponsord|advertentie|sponsorowan\\p{L}{0,2}|reklama|sponsorlu|reklam)",
  // To a runner a PR is a personal record. As a label, PR comes before a colon or bar, or beside Japanese letters.
  `(?:Ad|AD|(?i:is|an|this) (?i:an )?ad)(?! (?i:hoc|free|blocker))|PR(?= ?(?:[:：|]|${JAPANESE}))|(?<=${JAPANESE} ?)PR|Pub|ANZEIGE|Annonce|Anzeige(?= ?(?:$|[.,:;!|\\u2029]|[\\p{Lu}\\p{N}]))|(?i:als|eine) Anzeige`,
].join("|");
const OTHER_LABELS =
  "प्रायोजित|विज्ञापन|स्पॉन्सर|स्पॉन्सर्ड|スポンサー|広告|宣伝|プロモーション|タイアップ|提供:|赞助|贊助|广告|廣告|광고|협찬|реклам|спонсор|إعلان|ممول";

const NOT_WORDS =
  "not no non nicht kein keine keiner keinen pas nao sin sem sans ohne without isn_t never nor nie nobody niemand personne nadie ninguem";
// Written letter by letter: in V8 a look-behind with a group `(?i:)` fails to match "Keine" and "Nobody".
const ANY_CASE_NOT = NOT_WORDS.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`)
  .replaceAll(" ", "|")
  .replaceAll("_", " ");
const LATIN_NOT = `(?<!(?<!\\p{L})(?:${ANY_CASE_NOT}) (?:\\p{L}{1,12} ){0,2})`;
const OTHER_NOT = "(?!\\p{L}{0,4} ?(?:नहीं|ではな|ではあり|ではござい|じゃな|なし|不是))";

const LABEL = new RegExp(
  `${LATIN_NOT}(?<![\\p{Script=Latin}\\p{M}])(?:${LATIN_LABELS})(?!\\p{Script=Latin})|(?:${OTHER_LABELS})${OTHER_NOT}`,
  "u",
);

/**
 * Whether a mention is marked as paid for: by a label in its own paragraph or in the one before or after it. "Not
 * sponsored" is no label.
 */
function isDisclosed(text: string, { start, end }: Span): boolean {
  const before = text
    .slice(Math.max(0, start - NEAR_CHARS), start)
    .split(PARAGRAPH_BREAK)
    .slice(-2)
    .join(PARAGRAPH_BREAK);
  const after = text
    .slice(end, end + NEAR_CHARS)
    .split(PARAGRAPH_BREAK)
    .slice(0, 2)
    .join(PARAGRAPH_BREAK);
  return LABEL.test(`${before}${text.slice(start, end)}${after}`);
}
