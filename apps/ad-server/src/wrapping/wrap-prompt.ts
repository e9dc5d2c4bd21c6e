import type { WRAPPING_TYPES } from "@adrelay/contract";
import type { Ad } from "../catalog/ad.ts";
import { wrapAsMarkdown } from "./markdown.ts";
import { wrapAsPlainText } from "./plain.ts";
import { wrapAsXml } from "./xml.ts";

/**
 * Puts an ad beside the user's prompt.
 *
 * 1. The prompt stands in the result as it came, character for character.
 * 2. Neither the prompt nor the ad's text can close the section that it stands in, or open another:
 *    every delimiter of ours carries a nonce that occurs in neither, in no spelling, and the model is told
 *    which. The ad's text is one line a fact, and escaped where the format has an escape.
 * 3. The model is told to mark the mention as sponsored, and to leave the product out where it doesn't fit.
 */
export type WrappingType = (typeof WRAPPING_TYPES)[number];

/** What the model may say of the product. */
export type AdFacts = Pick<Ad, "product_name" | "advertiser" | "description" | "landing_url">;

/** The parts of a wrapped prompt, ready for one format. */
export interface WrapParts {
  readonly prompt: string;
  /** Label and text of each fact, without line breaks and not escaped yet. */
  readonly facts: readonly (readonly [label: string, text: string])[];
  readonly nonce: string;
}

/** `xml` is what the interface shows, so it is what a request without a type gets. */
export const DEFAULT_WRAPPING: WrappingType = "xml";
/** With 128 random bits a second draw is already a sign of a broken source. */
const DRAWS_MAX = 8;

const WRAPPERS = {
  xml: wrapAsXml,
  plain: wrapAsPlainText,
  markdown: wrapAsMarkdown,
} as const satisfies Record<WrappingType, (parts: WrapParts) => string>;

/**
 * The prompt that goes to the model in place of the user's.
 *
 * @param drawNonce a fresh unguessable string of letters and digits at each call
 */
export function wrapPrompt(
  { prompt, ad, type }: { prompt: string; ad: AdFacts; type: WrappingType },
  drawNonce: () => string,
): string {
  const facts = [
    ["product", oneLine(ad.product_name)],
    ["advertiser", oneLine(ad.advertiser)],
    ["description", oneLine(ad.description)],
    ["landing_url", oneLine(ad.landing_url)],
  ] as const;
  const texts = [prompt, ...facts.map(([, text]) => text)];
  return WRAPPERS[type]({ prompt, facts, nonce: nonceOutside(texts, drawNonce) });
}

/** A nonce that occurs in none of the texts, in any case, width or style, nor with anything in between. */
function nonceOutside(texts: readonly string[], drawNonce: () => string): string {
  const folded = texts.map((text) =>
    text
      .normalize("NFKC")
      .toLowerCase()
      .replace(/[^a-z\d]+/g, ""),
  );
  for (let draw = 0; draw < DRAWS_MAX; draw += 1) {
    const nonce = drawNonce();
    if (!folded.some((text) => text.includes(nonce.toLowerCase()))) {
      return nonce;
    }
  }
  throw new RangeError("the source of nonces repeats what stands in the prompt");
}

/**
 * Breaks, control and invisible characters become blanks: a fact can't look like a line of ours. Joiners and
 * emoji selectors stay, for words and emoji are made with them.
 */
function oneLine(text: string): string {
  return text
    .replace(/(?:[\s\p{Cc}]|(?!\u200c|\u200d|\ufe0e|\ufe0f)[\p{Cf}\p{Default_Ignorable_Code_Point}])+/gu, " ")
    .trim();
}
