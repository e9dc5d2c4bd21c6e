import type { Ad } from "../catalog/ad.ts";
import { type TermReader, wordsOf } from "./terms.ts";

const SENTENCE_END = /[.!?]+(?=\s|$)|[\n\u3002\uff01\uff1f\u0964]+/u;

/** What many ads may say alike, in the terms of the index. */
interface Phrase {
  readonly terms: readonly string[];
  readonly ads: Ad[];
}

/**
 * Finds ads by a keyword, or the name of their category, that stands wholly in one sentence of a prompt. One
 * bare word is no anchor unless it is all that the keyword has: "stay" says nothing of "where to stay".
 */
export class KeywordAnchors {
  readonly #terms: TermReader;
  readonly #phrases = new Map<string, Phrase>();
  /** The phrases under the longest of their terms. */
  readonly #byTerm = new Map<string, Phrase[]>();

  constructor(terms: TermReader) {
    this.#terms = terms;
  }

  add(ads: readonly Ad[]): void {
    for (const ad of ads) {
      for (const phrase of [...ad.keywords, ad.category.replaceAll("-", " "), ad.product_name]) {
        const terms = this.#terms.termsOf(phrase);
        const isBareWord = terms.length === 1 && wordsOf(phrase).length > 1;
        if (terms.length > 0 && !isBareWord) {
          this.#phraseOf(terms).ads.push(ad);
        }
      }
    }
  }

  /** The ads that are anchored in a prompt. A phrase is looked for once, however many ads have it. */
  find(prompt: string): ReadonlySet<Ad> {
    const found = new Set<Phrase>();
    for (const sentence of prompt.split(SENTENCE_END)) {
      const terms = new Set(this.#terms.termsOf(sentence));
      for (const phrase of [...terms].flatMap((term) => this.#byTerm.get(term) ?? [])) {
        if (!found.has(phrase) && phrase.terms.every((wanted) => terms.has(wanted))) {
          found.add(phrase);
        }
      }
    }
    return new Set([...found].flatMap(({ ads }) => ads));
  }

  #phraseOf(terms: readonly string[]): Phrase {
    const key = terms.join(" ");
    const known = this.#phrases.get(key);
    if (known !== undefined) {
      return known;
    }
    const phrase = { terms, ads: [] };
    const longest = terms.reduce((best, term) => (term.length > best.length ? term : best), "");
    const beside = this.#byTerm.get(longest) ?? [];
    beside.push(phrase);
    this.#byTerm.set(longest, beside);
    this.#phrases.set(key, phrase);
    return phrase;
  }
}
