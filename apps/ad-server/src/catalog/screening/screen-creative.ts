import type { FieldFault } from "@adrelay/contract";
import { formsOfDomain, readable } from "@adrelay/verdict";
import type { Ad } from "../ad.ts";
import { isInstruction } from "./instructions.ts";
import { foreignLink, suspectCharacters, suspectMarkup } from "./suspicious-text.ts";

/** The part of an ad that an advertiser writes. The landing URL is that of `asciiLandingUrl`. */
type Creative = Pick<
  Ad,
  | "product_name"
  | "advertiser"
  | "description"
  | "keywords"
  | "landing_url"
  | "negative_keywords"
  | "negative_topics"
>;

/** Longer than the words of any language: only names of chemicals and hidden payloads are. */
const LONG_WORD_CHARS = 60;
const LONG_WORD =
  /[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]{61,}/u;
const SPACED_LETTERS = /(?:^|\P{L})(?:\p{L}[ .\-_·]){5}\p{L}(?:$|\P{L})/u;
/**
 * Finds texts of a creative that speak to the model instead of a buyer, link to another domain, or could pass for a
 * delimiter. Each fault has its place in the ad. The wrapping is safe without this, since no text of an ad can close
 * its section. The screening is against what a text can do inside its section. It doesn't know every way to write
 * such a text.
 */
export function screenCreative(creative: Creative): FieldFault[] {
  const { product_name, advertiser, description, keywords, landing_url } = creative;
  const landing = URL.parse(landing_url);
  const fault = (text: string) => textFault(screenedText(text), landing?.hostname ?? "");
  const texts = [
    ["product_name", product_name],
    ["advertiser", advertiser],
    ["description", description],
    ...keywords.map((keyword, index) => [`keywords.${index}`, keyword] as const),
  ] as const;
  // All texts together first, which is faster: catalogues are long, and few creatives have a fault.
  const isClean = fault(texts.map(([, text]) => text).join(";\n")) === undefined;
  return [
    ...(isClean ? [] : texts.flatMap(([path, text]) => asFault(path, fault(text)))),
    // No model and no user sees them, and they may name what the ad must not: another domain, or "prompt injection".
    ...(["negative_keywords", "negative_topics"] as const).flatMap((field) =>
      (creative[field] ?? []).flatMap((text, index) => asFault(`${field}.${index}`, suspectCharacters(text))),
    ),
    // An absent name is reported by the schema.
    ...asFault(
      "product_name",
      // Judged in the form in which answers are searched. Without a letter or digit it would be found in every answer
      // or in none.
      product_name === "" || /[\p{L}\p{N}]/u.test(readable(product_name))
        ? undefined
        : "must have a letter or a digit",
    ),
    ...asFault("landing_url", landing === null ? undefined : urlFault(landing_url, landing)),
  ];
}

function asFault(path: string, message: string | undefined): FieldFault[] {
  return message === undefined ? [] : [{ path, message }];
}

function textFault(text: ScreenedText, landingHost: string): string | undefined {
  return (
    suspectCharacters(text.raw) ??
    suspectMarkup(text.plain) ??
    foreignLink(text.plain, landingHost) ??
    (hasLongWord(text.plain) ? "has a word of more than 60 characters" : undefined) ??
    (SPACED_LETTERS.test(text.plain) ? "has letters with blanks in between" : undefined) ??
    (isInstruction(text.folded) ? "reads like an instruction to a model" : undefined)
  );
}

function hasLongWord(plain: string): boolean {
  return hasLongRun(plain) && plain.split(/\s/).some((word) => LONG_WORD.test(word));
}

/** Whether a text has this many characters in a row without a blank. It is cheap, and false for nearly every text. */
function hasLongRun(plain: string): boolean {
  let from = 0;
  for (let blank = plain.indexOf(" "); blank !== -1; blank = plain.indexOf(" ", from)) {
    if (blank - from > LONG_WORD_CHARS) {
      return true;
    }
    from = blank + 1;
  }
  return plain.length - from > LONG_WORD_CHARS;
}

function urlFault(written: string, landing: URL): string | undefined {
  if (landing.username !== "" || landing.password !== "") {
    return "must not have a user name";
  }
  if (!/^[\x21-\x7e]+$/.test(written) || /["'<>`\\^{|}]/.test(written)) {
    return "must be written in plain characters, the rest percent-encoded";
  }
  if (!/^[a-z\d_-]+(?:\.[a-z\d_-]+)+\.?$/.test(landing.hostname) || /^[\d.]+$/.test(landing.hostname)) {
    return "must name a domain";
  }
  const suspect = formsOfDomain(landing.hostname).map(suspectCharacters).find(Boolean);
  if (suspect !== undefined) {
    return suspect;
  }
  const words = readableUrl(landing);
  return isInstruction(words) || suspectMarkup(words) !== undefined
    ? "reads like an instruction to a model"
    : undefined;
}

/** The words of a URL after its host. */
function readableUrl({ pathname, search, hash }: URL): string {
  const written = `${pathname} ${search} ${hash}`.replaceAll("+", " ");
  const decoded = /%(?![\da-f]{2})/i.test(written) ? written : decodePercent(written);
  return screenedText(decoded.replace(/[/?&=#_.-]+/g, " ")).folded;
}

function decodePercent(text: string): string {
  // Bytes that aren't UTF-8 become replacement characters, as in a browser.
  return Buffer.from(
    text.replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    "latin1",
  ).toString("utf8");
}

/** A text of a creative in the forms that the checks need. */
interface ScreenedText {
  /** As it is in the catalogue. */
  readonly raw: string;
  /** In Unicode's NFKC form (no fullwidth or bold letters), without invisible characters. */
  readonly plain: string;
  /** `plain` in small letters, without accents, with one blank between words. */
  readonly folded: string;
}

function screenedText(raw: string): ScreenedText {
  const isAscii = /^[\x20-\x7e]*$/.test(raw);
  const plain = isAscii ? raw : raw.normalize("NFKC").replace(/\p{Default_Ignorable_Code_Point}/gu, "");
  return { raw, plain, folded: foldText(isAscii ? plain : withoutAccents(plain)) };
}

function withoutAccents(text: string): string {
  return text
    .normalize("NFD")
    .replace(/(?<=\p{Script=Latin}\p{M}{0,8})\p{M}/gu, "")
    .normalize("NFC");
}

function foldText(text: string): string {
  return text
    .toLowerCase()
    .replace(/[\u2018\u2019\u02bc]/g, "'")
    .replace(/[\s_*"\u201c\u201d()[\]]+/g, " ")
    .trim();
}
