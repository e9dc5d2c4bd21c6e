import type { Ad } from "../catalog/ad.ts";
import { type TermReader, wordsOf } from "./terms.ts";

const SENTENCE_END = /[.!?]+(?=\s|$)|[\n\u3002\uff01\uff1f\u0964]+/u;

/** A keyword or name that many ads may share, as index terms. */
interface Phrase {
  readonly terms: readonly string[];
  readonly ads: Ad[];
}

/**
 * Finds the ads that have a keyword, their category's name or their product's name within one sentence of a prompt.
 * All terms of the phrase must be in the sentence. A phrase of several words that leaves a single term after folding
 * doesn't count: "where to stay" would be found by every "stay".
 */
export class KeywordIndex {
  readonly #terms: TermReader;
  readonly #phrases = new Map<string, Phrase>();
  /** Phrases by the longest of their terms. */
  readonly #byTerm = new Map<string, Phrase[]>();

  constructor(terms: TermReader) {
    this.#terms = terms;
  }

  add(ads: readonly Ad[]): void {
    for (const ad of ads) {
      for (const phrase of [...ad.keywords, ad.category.replaceAll("-", " "), ad.product_name]) {
        const terms = this.#terms.termsOf(phrase);
        const isReducedToOneTerm = terms.length === 1 && wordsOf(phrase).length > 1;
        if (terms.length > 0 && !isReducedToOneTerm) {
          this.#phraseOf(terms).ads.push(ad);
        }
      }
    }
  }

  /** The ads with a phrase that occurs in the prompt. Each phrase is searched once, however many ads share it. */
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
