import type { FieldFault } from "@adrelay/contract";
import { readable } from "../verdict/readable-text.ts";
import type { Ad } from "./ad.ts";
import { foreignLink } from "./screening/foreign-links.ts";
import { INSTRUCTION_PHRASES } from "./screening/instruction-phrases.ts";
import { type ScreenedText, screenedText } from "./screening/screened-text.ts";
import { suspectCharacters } from "./screening/suspect-characters.ts";
import { suspectMarkup } from "./screening/suspect-markup.ts";

/** What an advertiser writes of an ad. */
export type Creative = Pick<Ad, "product_name" | "advertiser" | "description" | "keywords" | "landing_url">;

/** Longer words than any language writes: names of chemicals and payloads. */
const LONG_WORD_CHARS = 60;
const LONG_WORD =
  /[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]{61,}/u;
const SPACED_LETTERS = /(?:^|\P{L})(?:\p{L}[ .\-_·]){5}\p{L}(?:$|\P{L})/u;
const INSTRUCTION = anyOf(Object.values(INSTRUCTION_PHRASES).flat());
const DIGIT_LETTERS: Readonly<Record<string, string>> = {
  "0": "o",
  "1": "i",
  "3": "e",
  "4": "a",
  "5": "s",
  "7": "t",
  "@": "a",
  $: "s",
};

/**
 * What of a creative would speak to the model instead of a buyer, lead elsewhere, or pass for a delimiter;
 * each fault with its place in the ad. The wrapping holds without it: no text of an ad can close a section.
 * This is for what a sound section can still say. Not guaranteed: that every way to say it is known.
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
  // All together first: hardly any creative is at fault, and catalogues are long.
  const isClean = fault(texts.map(([, text]) => text).join(";\n")) === undefined;
  return [
    ...(isClean ? [] : texts.flatMap(([path, text]) => asFault(path, fault(text)))),
    // An absent name is a fault of the form.
    ...asFault(
      "product_name",
      // As answers are read: a sign or an address that goes there would be found in every answer, or in none.
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

/** One pattern of many. Most begin at a word: that is looked at once a character, and not once a phrase. */
function anyOf(sources: readonly string[]): RegExp {
  const [atWords, others] = [true, false].map((isAtWord) =>
    sources.filter((source) => source.startsWith("\\b") === isAtWord),
  );
  return new RegExp(
    `\\b(?:${atWords?.map((source) => source.slice(2)).join("|")})|${others?.join("|")}`,
    "u",
  );
}

function hasLongWord(plain: string): boolean {
  return hasLongRun(plain) && plain.split(/\s/).some((word) => LONG_WORD.test(word));
}

/** Whether so many characters come without a blank: cheap, and true of hardly any text. */
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

function isInstruction(folded: string): boolean {
  return (
    INSTRUCTION.test(folded) || (/\p{L}[\d@$]|[\d@$]\p{L}/u.test(folded) && INSTRUCTION.test(spelled(folded)))
  );
}

/** "1gn0re" as "ignore". */
function spelled(folded: string): string {
  return folded.replace(/[013457@$]/g, (character) => DIGIT_LETTERS[character] ?? character);
}

function urlFault(written: string, landing: URL): string | undefined {
  if (landing.username !== "" || landing.password !== "") {
    return "must not have a user name";
  }
  if (!/^[\x21-\x7e]+$/.test(written) || /["'<>`\\^{|}]/.test(written)) {
    return "must be written in plain characters, the rest percent-encoded";
  }
  if (!landing.hostname.includes(".") || /^[\d.]+$|^\[/.test(landing.hostname)) {
    return "must name a domain";
  }
  const said = readableUrl(landing);
  return isInstruction(said) || suspectMarkup(said) !== undefined
    ? "reads like an instruction to a model"
    : undefined;
}

function readableUrl({ pathname, search, hash }: URL): string {
  const written = `${pathname} ${search} ${hash}`.replaceAll("+", " ");
  const decoded = /%(?![\da-f]{2})/i.test(written) ? written : decodePercent(written);
  return screenedText(decoded.replace(/[/?&=#_.-]+/g, " ")).folded;
}

function decodePercent(text: string): string {
  // Bytes that are no UTF-8 become signs, as a browser would show them.
  return Buffer.from(
    text.replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    "latin1",
  ).toString("utf8");
}
