import type { Ad } from "../catalog/ad.ts";
import { type TermReader, wordsOf } from "./terms.ts";

const SENTENCE_END = /[.!?]+(?=\s|$)|[\n\u3002\uff01\uff1f\u0964]+/u;

/**
 * Finds ads by a keyword, or the name of their category, that stands wholly in one sentence of a prompt. One
 * bare word is no anchor unless it is all that the keyword has: "stay" says nothing of "where to stay".
 */
export class KeywordAnchors {
  readonly #terms: TermReader;
  /** Each anchor under one of its terms. */
  readonly #anchors = new Map<string, { readonly terms: readonly string[]; readonly ad: Ad }[]>();

  constructor(ads: readonly Ad[], terms: TermReader) {
    this.#terms = terms;
    for (const ad of ads) {
      for (const phrase of [...ad.keywords, ad.category.replaceAll("-", " "), ad.product_name]) {
        const phraseTerms = terms.termsOf(phrase);
        const isBareWord = phraseTerms.length === 1 && wordsOf(phrase).length > 1;
        const longest = phraseTerms.reduce((best, term) => (term.length > best.length ? term : best), "");
        if (longest !== "" && !isBareWord) {
          this.#anchors.set(longest, [...(this.#anchors.get(longest) ?? []), { terms: phraseTerms, ad }]);
        }
      }
    }
  }

  /** The ads that are anchored in a prompt. */
  find(prompt: string): ReadonlySet<Ad> {
    const found = new Set<Ad>();
    for (const sentence of prompt.split(SENTENCE_END)) {
      const terms = new Set(this.#terms.termsOf(sentence));
      for (const term of terms) {
        for (const anchor of this.#anchors.get(term) ?? []) {
          if (anchor.terms.every((wanted) => terms.has(wanted))) {
            found.add(anchor.ad);
          }
        }
      }
    }
    return found;
  }
}
