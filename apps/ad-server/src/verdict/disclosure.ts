import { BREAK } from "./readable-text.ts";

/** How far a label may stand from a mention, in characters of the readable text. */
export const NEAR_CHARS = 600;

const JAPANESE = "[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}]";

/** Labels of paid content, without accents. Those that are also everyday words want a capital or an article. */
const LATIN_LABELS = [
  "(?i:sponsored?|sponsors|sponsoring|promoted|paid (?:partnership|placement|promotion|content)|advert|advertis(?:ements?|ed|ing)|advertorial|an advertiser)",
  "(?i:gesponsert\\p{L}{0,2}|werbung|werbeanzeige|werbehinweis|werblich\\p{L}{0,2}|anzeigenhinweis|bezahlte (?:partnerschaft|empfehlung|werbung))",
  "(?i:sponsorise\\p{L}{0,2}|publicite|publicitaire|partenariat remunere|contenu commercial)",
  "(?i:patrocin(?:ad[oa]s?|io)|anuncio|publicidad|publicidade|publicitari[oa]|promocionad[oa]|contenido pagado|conteudo pago|parceria paga|publi)",
  "(?i:sponsorizzat[oa]|pubblicita|gesponsord|advertentie|sponsorowan\\p{L}{0,2}|reklama|sponsorlu|reklam)",
  // A runner's PR is a record; Japanese puts its PR before or after its own letters.
  `(?:Ad|AD|(?i:is|an|this) (?i:an )?ad)(?! (?i:hoc|free|blocker))|PR(?= ?(?:[:：|]|${JAPANESE}))|(?<=${JAPANESE} ?)PR|Pub|ANZEIGE|Annonce|Anzeige(?= ?(?:$|[.,:;!|\\u2029]|[\\p{Lu}\\p{N}]))|(?i:als|eine) Anzeige`,
].join("|");
const OTHER_LABELS =
  "प्रायोजित|विज्ञापन|स्पॉन्सर|स्पॉन्सर्ड|スポンサー|広告|宣伝|プロモーション|タイアップ|提供:|赞助|贊助|广告|廣告|광고|협찬|реклам|спонсор|إعلان|ممول";

const NOT_WORDS =
  "not no non nicht kein keine keiner keinen pas nao sin sem sans ohne without isn_t never nor nie nobody niemand personne nadie ninguem";
// Letter by letter: V8 takes "Keine" and "Nobody" for other words where a look-behind has a group `(?i:)`.
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
 * Whether a mention is marked as paid for: a label in the same paragraph or the one before or after it, in
 * the languages that answers come in. "Not sponsored" is no label.
 */
export function isDisclosed(text: string, { start, end }: { start: number; end: number }): boolean {
  const before = text
    .slice(Math.max(0, start - NEAR_CHARS), start)
    .split(BREAK)
    .slice(-2)
    .join(BREAK);
  const after = text
    .slice(end, end + NEAR_CHARS)
    .split(BREAK)
    .slice(0, 2)
    .join(BREAK);
  return LABEL.test(`${before}${text.slice(start, end)}${after}`);
}
