import { setImmediate as turn } from "node:timers/promises";
import type { Ad } from "../catalog/ad.ts";
import { isUnspaced, termsOfKeywords, termsOfPrompt } from "./keyword-terms.ts";
import { numberFormsOf } from "./number-forms.ts";

/**
 * Negative keywords: an ad isn't shown beside a prompt that contains one of its negative keywords.
 *
 * A prompt contains a keyword if one of its sentences has all words of the keyword, in any order. Case, accents and
 * width don't matter, nor whether a word is singular or plural. Words in scripts without blanks count anywhere, also
 * within a longer word. No word is left out as a stop word: "without contract" says more than "contract".
 *
 * The work for a prompt grows with the prompt, and hardly with the catalogue. A keyword is looked at only if the prompt
 * has the rarest of its words, and only once, however many ads share it.
 */
export class NegativeKeywords {
  /** Numbers of the ads that have negative keywords, by ad id. */
  readonly #ads = new Map<string, number>();
  /** All terms of keywords. Each has the keywords of which it is the rarest term. */
  readonly #byTerm = new Map<string, Bucket>();
  /** Lengths of the terms in scripts without blanks, by their first character. */
  readonly #lengths = new Map<string, Set<number>>();

  /** Indexes the ads at once. */
  static of(ads: readonly Ad[]): NegativeKeywords {
    const index = new NegativeKeywords();
    const keywords: Keywords = new Map();
    index.#collect(ads, keywords);
    index.#file([...keywords.values()]);
    return index;
  }

  /** As `of`, but in many turns of the event loop. */
  static async build(ads: readonly Ad[]): Promise<NegativeKeywords> {
    const index = new NegativeKeywords();
    const keywords: Keywords = new Map();
    for (let from = 0; from < ads.length; from += TURN_ADS) {
      await turn();
      index.#collect(ads.slice(from, from + TURN_ADS), keywords);
    }
    const all = [...keywords.values()];
    for (let from = 0; from < all.length; from += TURN_KEYWORDS) {
      await turn();
      index.#file(all.slice(from, from + TURN_KEYWORDS));
    }
    return index;
  }

  /** Reads a prompt once, and says of each ad of the catalogue whether the prompt has a negative keyword of it. */
  read(text: KeywordText): (ad: Ad) => boolean {
    const isUnwanted = new Uint8Array(this.#ads.size);
    for (const { ads } of this.#find(text)) {
      for (const ad of ads) {
        isUnwanted[ad] = 1;
      }
    }
    return ({ id }) => isUnwanted[this.#ads.get(id) ?? -1] === 1;
  }

  /** The negative keywords, of any ad, that a text contains, as keywordKeys names them. */
  keysIn(text: KeywordText): ReadonlySet<string> {
    return new Set(this.#find(text).map(({ terms }) => keyOf(terms)));
  }

  #collect(ads: readonly Ad[], keywords: Keywords): void {
    for (const { id, negative_keywords = [] } of ads) {
      const termLists = termsOfKeywords(negative_keywords).filter((terms) => terms.length > 0);
      if (termLists.length === 0) {
        continue;
      }
      const ad = this.#ads.size;
      this.#ads.set(id, ad);
      for (const [key, terms] of new Map(termLists.map((list) => [keyOf(list), list]))) {
        const known = keywords.get(key);
        known?.ads.push(ad);
        if (known === undefined) {
          keywords.set(key, { terms: terms.map((term) => this.#bucketOf(term).term), ads: [ad] });
        }
      }
    }
  }

  /** The bucket of a term; each keyword that has the term is counted in it. */
  #bucketOf(term: string): Bucket {
    const known = this.#byTerm.get(term);
    if (known !== undefined) {
      known.uses += 1;
      return known;
    }
    const bucket = { term, uses: 1, others: [], keywords: [] };
    this.#byTerm.set(term, bucket);
    if (isUnspaced(term)) {
      const first = term.charAt(0);
      this.#lengths.set(first, (this.#lengths.get(first) ?? new Set()).add(term.length));
    }
    return bucket;
  }

  /** Puts keywords into the buckets of their rarest terms, once all terms are counted. */
  #file(keywords: readonly Keyword[]): void {
    const usesOf = (term: string) => this.#byTerm.get(term)?.uses ?? 0;
    for (const keyword of keywords) {
      const [rarest = "", other = rarest] = keyword.terms.toSorted((one, two) => usesOf(one) - usesOf(two));
      const bucket = this.#byTerm.get(rarest);
      bucket?.others.push(other);
      bucket?.keywords.push(keyword);
    }
  }

  #find({ prompt, language }: KeywordText): Keyword[] {
    if (this.#ads.size === 0) {
      return [];
    }
    const places = this.#placesOf(prompt, language);
    return Array.from(places.keys(), (term) => this.#byTerm.get(term)).flatMap((bucket) =>
      (bucket?.keywords ?? []).filter(
        (keyword, index) => places.has(bucket?.others[index] ?? "") && areTogether(keyword.terms, places),
      ),
    );
  }

  /** The terms of keywords that a prompt has in any form, with the numbers of their sentences. */
  #placesOf(prompt: string, language: string): Places {
    const places = new Map<string, Set<number>>();
    for (const [term, sentences] of termsOfPrompt(prompt)) {
      for (const form of isUnspaced(term) ? this.#piecesOf(term) : numberFormsOf(term, language)) {
        if (this.#byTerm.has(form)) {
          const known = places.get(form) ?? new Set();
          for (const sentence of sentences) {
            known.add(sentence);
          }
          places.set(form, known);
        }
      }
    }
    return places;
  }

  /** The pieces of a run that have the first character and the length of a term. */
  #piecesOf(run: string): ReadonlySet<string> {
    const pieces = new Set<string>();
    for (let start = 0; start < run.length; start += 1) {
      for (const length of this.#lengths.get(run.charAt(start)) ?? []) {
        pieces.add(run.slice(start, start + length));
      }
    }
    return pieces;
  }
}

interface KeywordText {
  readonly prompt: string;
  /** ISO 639-1. */
  readonly language: string;
}
/** The numbers of the sentences that have a term. */
type Places = ReadonlyMap<string, ReadonlySet<number>>;

interface Keyword {
  readonly terms: readonly string[];
  /** Numbers of the ads that don't want it. */
  readonly ads: number[];
}

/** Keywords by their keys, so that each is one object for all ads. */
type Keywords = Map<string, Keyword>;

interface Bucket {
  readonly term: string;
  /** How many keywords have the term. */
  uses: number;
  readonly keywords: Keyword[];
  /** Of each keyword another term, so that nearly all keywords are ruled out without being looked at. */
  readonly others: string[];
}

/** Ads, and keywords, that are indexed in one turn of the event loop: some milliseconds. */
const TURN_ADS = 50;
const TURN_KEYWORDS = 5000;

/** Names for keywords: equal for keywords of the same words, and empty for a keyword without a word. */
export function keywordKeys(keywords: readonly string[]): string[] {
  return termsOfKeywords(keywords).map(keyOf);
}

function keyOf(terms: readonly string[]): string {
  return terms.toSorted().join(" ");
}

/** Whether one sentence has all terms. */
function areTogether(terms: readonly string[], places: Places): boolean {
  const [first = "", ...others] = terms;
  return [...(places.get(first) ?? [])].some((at) => others.every((term) => places.get(term)?.has(at)));
}
