import { setImmediate as turn } from "node:timers/promises";
import MiniSearch from "minisearch";
import type { Ad } from "../catalog/ad.ts";
import type { PromptModel } from "../prompt-model/prompt-model.ts";
import { dictionaryWords, readableText, wordsOfPrompt } from "../prompt-model/prompt-text.ts";
import { dotProduct } from "../prompt-model/word-vectors.ts";
import { KeywordIndex } from "./keyword-index.ts";
import {
  type NeedThresholds,
  needCategories,
  type Question,
  type Relevance,
  type ScoredAd,
  wishShare,
} from "./relevance.ts";
import { TermReader } from "./terms.ts";

/** Chosen on ad-model/testdata/prompts-heldout.jsonl; see docs/adr/0018. */
const LEXICAL_THRESHOLDS: NeedThresholds = {
  needMin: 0.4,
  shareMin: { en: 0.35, other: 0.4 },
  ofBestMin: 0.75,
};
/** For ads of categories that the model doesn't know: least probability that the prompt wishes to buy anything. */
const WISH_MIN = 0.6;
/** Scores of ads in one category differ by at most this share, since the category itself answers the need. */
const FIT_SHARE = 0.5;
/** Relevance of an ad that is found only by a keyword. */
const KEYWORD_SCORE = 0.5;
/** Only the beginning of a prompt is compared with ads. */
const PROMPT_CHARS_MAX = 2000;
/** Ads of unknown categories that are indexed in one turn of the event loop. */
const TURN_ADS = 500;

interface IndexedAd {
  readonly ad: Ad;
  /** The word vector of the ad's texts. */
  readonly meaning: Float32Array;
}

interface IndexedCategory {
  readonly ads: readonly IndexedAd[];
  readonly index: CategoryIndex;
}

/**
 * Relevance that needs no download. The fitted model says which category a prompt needs. BM25 and the closeness of
 * word vectors say which ads of the category fit best. An ad of a category that the model doesn't know is found if
 * the prompt wishes to buy something and contains a keyword of the ad.
 */
export class LexicalRelevance implements Relevance {
  /** The categories that are indexed already. */
  readonly #indexed = new Map<string, IndexedCategory>();
  readonly #members: ReadonlyMap<string, readonly Ad[]>;
  readonly #model: PromptModel;
  readonly #terms = new TermReader();
  readonly #unknown = new KeywordIndex(this.#terms);

  private constructor(ads: readonly Ad[], model: PromptModel) {
    this.#members = Map.groupBy(ads, ({ category }) => category);
    this.#model = model;
  }

  /**
   * Resolves before the known categories are indexed, so that a long catalogue can be served immediately. They are
   * indexed after that, one in each turn of the event loop, or earlier if a prompt needs one.
   */
  static async build(ads: readonly Ad[], model: PromptModel): Promise<LexicalRelevance> {
    const known = new Set(model.categories);
    const [ofKnown = [], ofUnknown = []] = [true, false].map((isKnown) =>
      ads.filter(({ category }) => known.has(category) === isKnown),
    );
    const relevance = new LexicalRelevance(ofKnown, model);
    for (let from = 0; from < ofUnknown.length; from += TURN_ADS) {
      await turn();
      relevance.#unknown.add(ofUnknown.slice(from, from + TURN_ADS));
    }
    void relevance.#indexCategories();
    return relevance;
  }

  async rank(question: Question): Promise<readonly ScoredAd[]> {
    return [...this.#ofKnownCategories(question), ...this.#ofUnknownCategories(question)].sort(
      (a, b) => b.score - a.score,
    );
  }

  async #indexCategories(): Promise<void> {
    for (const category of this.#members.keys()) {
      await turn();
      this.#categoryOf(category);
    }
  }

  #categoryOf(category: string): IndexedCategory | undefined {
    const members = this.#members.get(category);
    if (members === undefined || this.#indexed.has(category)) {
      return this.#indexed.get(category);
    }
    const indexed = {
      ads: members.map((ad) => ({ ad, meaning: meaningOf(ad, this.#model) })),
      index: new CategoryIndex(members, this.#terms),
    };
    this.#indexed.set(category, indexed);
    return indexed;
  }

  #ofKnownCategories({ prompt, language, reading }: Question): ScoredAd[] {
    const categories = needCategories(reading, language, LEXICAL_THRESHOLDS);
    const terms = categories.length === 0 ? [] : this.#terms.termsOf(prompt.slice(0, PROMPT_CHARS_MAX));
    return categories.flatMap(({ category, share }) => {
      const indexed = this.#categoryOf(category);
      const found = indexed?.index.search(terms);
      return (indexed?.ads ?? []).map(({ ad, meaning }) => ({
        ad,
        score: share * fitOf(found?.get(ad.id) ?? 0, closeness(meaning, reading.meaning)),
      }));
    });
  }

  #ofUnknownCategories({ prompt, reading }: Question): ScoredAd[] {
    if (wishShare(reading) < WISH_MIN) {
      return [];
    }
    return Array.from(this.#unknown.find(prompt.slice(0, PROMPT_CHARS_MAX)), (ad) => ({
      ad,
      score: KEYWORD_SCORE,
    }));
  }
}

/** Weighs BM25 and meaning equally. No ad of a needed category scores less than half of the best possible score. */
function fitOf(wordShare: number, meaningShare: number): number {
  return 1 - FIT_SHARE + (FIT_SHARE * (wordShare + meaningShare)) / 2;
}

/** From 0 to 1. Vectors in opposite directions count as 0. */
function closeness(a: Float32Array, b: Float32Array): number {
  return Math.min(1, Math.max(0, dotProduct(a, b)));
}

function meaningOf(ad: Ad, model: PromptModel): Float32Array {
  const text = [ad.product_name, ad.description, ...ad.keywords].join(". ");
  return model.vectors.meaningOf(dictionaryWords(wordsOfPrompt(readableText(text))));
}

const FIELD_BOOSTS = { product_name: 3, keywords: 3, description: 1 } as const;
/** Only the rarest terms of a prompt are searched: they distinguish ads best, and the work is bounded. */
const QUERY_TERMS_MAX = 16;

/** A full-text index (BM25) of the ads of one category. */
class CategoryIndex {
  /** Its texts are index terms, separated by blanks. */
  readonly #index = new MiniSearch({
    fields: Object.keys(FIELD_BOOSTS),
    tokenize: (terms) => terms.split(" "),
    processTerm: (term) => term,
    searchOptions: { combineWith: "OR", boost: FIELD_BOOSTS },
  });
  readonly #adsWith = new Map<string, number>();

  constructor(ads: readonly Ad[], terms: TermReader) {
    for (const ad of ads) {
      const name = terms.termsOf(ad.product_name);
      const keywords = terms.termsOf(ad.keywords.join("\n"));
      const description = terms.termsOf(ad.description);
      this.#index.add({
        id: ad.id,
        product_name: name.join(" "),
        keywords: keywords.join(" "),
        description: description.join(" "),
      });
      for (const term of new Set([...name, ...keywords, ...description])) {
        this.#adsWith.set(term, (this.#adsWith.get(term) ?? 0) + 1);
      }
    }
  }

  /** BM25 scores by ad id, each as a share of the best score. Ads without a term of the prompt are absent. */
  search(promptTerms: readonly string[]): ReadonlyMap<string, number> {
    const known = [...new Set(promptTerms)].filter((term) => this.#adsWith.has(term));
    const rarest = known
      .sort((a, b) => (this.#adsWith.get(a) ?? 0) - (this.#adsWith.get(b) ?? 0))
      .slice(0, QUERY_TERMS_MAX);
    if (rarest.length === 0) {
      return new Map();
    }
    const found = this.#index.search(rarest.join(" "));
    const best = found[0]?.score ?? 1;
    return new Map(found.map(({ id, score }) => [String(id), score / best]));
  }
}
