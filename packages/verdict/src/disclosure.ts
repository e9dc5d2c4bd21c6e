import { anyCase } from "./any-case.ts";
import type { MarkedText, Span } from "./marks.ts";
import { PARAGRAPH_BREAK } from "./readable-text.ts";

/** How far a label may be from a mention, in characters of the readable text. */
const NEAR_CHARS = 600;

const JAPANESE = "[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}]";

/**
 * Labels of paid content, without accents. A label that is also an everyday word needs a capital letter or an
 * article.
 */
const LATIN_LABELS = [
  anyCase(
    "sponsored?|sponsors|sponsoring|promoted|paid (?:partnership|placement|promotion|content)|advert|advertis(?:ements?|ed|ing)|advertorial|an advertiser",
  ),
  anyCase(
    "gesponsert\\p{L}{0,2}|werbung|werbeanzeige|werbehinweis|werblich\\p{L}{0,2}|anzeigenhinweis|bezahlte (?:partnerschaft|empfehlung|werbung)",
  ),
  anyCase("sponsorise\\p{L}{0,2}|publicite|publicitaire|partenariat remunere|contenu commercial"),
  anyCase(
    "patrocin(?:ad[oa]s?|io)|anuncio|publicidad|publicidade|publicitari[oa]|promocionad[oa]|contenido pagado|conteudo pago|parceria paga|publi",
  ),
  anyCase(
    "sponsorizzat[oa]|pubblicita|gesponsord|advertentie|sponsorowan\\p{L}{0,2}|reklama|sponsorlu|reklam",
  ),
  // To a runner a PR is a personal record. As a label, PR comes before a colon or bar, or beside Japanese letters.
  `(?:Ad|AD|(?:${anyCase("is|an|this")}) (?:${anyCase("an ")})?ad)(?! (?:${anyCase("hoc|free|blocker")}))|PR(?= ?(?:[:：|]|${JAPANESE}))|(?<=${JAPANESE} ?)PR|Pub|ANZEIGE|Annonce|Anzeige(?= ?(?:$|[.,:;!|(\\u2029]|[\\p{Lu}\\p{N}]))|(?:${anyCase("als|eine")}) Anzeige`,
].join("|");
const OTHER_LABELS =
  "प्रायोजित|विज्ञापन|स्पॉन्सर|स्पॉन्सर्ड|スポンサー|広告|宣伝|プロモーション|タイアップ|提供:|赞助|贊助|广告|廣告|광고|협찬|реклам|спонсор|إعلان|ممول";

const NOT_WORDS =
  "not no non nicht kein keine keiner keinen pas nao sin sem sans ohne without isn_t never nor nie nobody niemand personne nadie ninguem";
const ANY_CASE_NOT = anyCase(NOT_WORDS.replaceAll(" ", "|").replaceAll("_", " "));
const LATIN_NOT = `(?<!(?<!\\p{L})(?:${ANY_CASE_NOT}) (?:\\p{L}{1,12} ){0,2})`;
const OTHER_NOT = "(?!\\p{L}{0,4} ?(?:नहीं|ではな|ではあり|ではござい|じゃな|なし|不是))";

const LABEL = new RegExp(
  `${LATIN_NOT}(?<![\\p{Script=Latin}\\p{M}])(?:${LATIN_LABELS})(?!\\p{Script=Latin})|(?:${OTHER_LABELS})${OTHER_NOT}`,
  "u",
);

/**
 * Whether a mention is marked as paid for: by a label in its own paragraph or in the one before or after it. "Not
 * sponsored" is no label. The parameters of an address are none either. A label that is shown only after a click marks
 * only mentions that the same click shows.
 */
export function isDisclosed({ text, spans }: MarkedText, mention: Span): boolean {
  const { start, end } = mention;
  const unread = [
    ...spans.address,
    ...spans.collapsed.filter((part) => start < part.start || end > part.end),
  ];
  const read = (from: number, to: number) => withBlanks(text.slice(from, to), from, unread);
  const before = read(Math.max(0, start - NEAR_CHARS), start)
    .split(PARAGRAPH_BREAK)
    .slice(-2)
    .join(PARAGRAPH_BREAK);
  const after = read(end, end + NEAR_CHARS)
    .split(PARAGRAPH_BREAK)
    .slice(0, 2)
    .join(PARAGRAPH_BREAK);
  return LABEL.test(`${before}${read(start, end)}${after}`);
}

/** A part of a text, with blanks for what lies in one of the spans. Breaks stay. */
function withBlanks(part: string, from: number, spans: readonly Span[]): string {
  let result = part;
  for (const { start, end } of spans) {
    const first = Math.max(0, start - from);
    const last = Math.min(part.length, end - from);
    if (first < last) {
      const blank = result.slice(first, last).replace(/[^\u2029]/g, " ");
      result = `${result.slice(0, first)}${blank}${result.slice(last)}`;
    }
  }
  return result;
}
