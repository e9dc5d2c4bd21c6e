import { setImmediate as turn } from "node:timers/promises";
import type { Ad } from "../catalog/ad.ts";
import type { PromptModel } from "../prompt-model/prompt-model.ts";
import { dictionaryWords, readableText, wordsOfPrompt } from "../prompt-model/prompt-text.ts";
import { dotProduct } from "../prompt-model/word-vectors.ts";
import { CategoryIndex } from "./category-index.ts";
import { KeywordAnchors } from "./keyword-anchors.ts";
import { type NeedThresholds, needCategories, wishShare } from "./need-categories.ts";
import type { Question, Relevance, ScoredAd } from "./relevance.ts";
import { TermReader } from "./terms.ts";

/** Chosen on testdata/prompts-heldout.jsonl; docs/adr/0018 has the figures. */
export const LEXICAL_THRESHOLDS: NeedThresholds = {
  needMin: 0.4,
  shareMin: { en: 0.35, other: 0.4 },
  ofBestMin: 0.75,
};
/** For categories that the model was not fitted to: the prompt must want to buy something, whatever it is. */
const WISH_MIN = 0.6;
/** Ads of one category differ by at most this share: the category is what the person needs. */
const FIT_SHARE = 0.5;
/** Relevance of an ad that only its keywords speak for. */
const ANCHORED_SCORE = 0.5;
/** Prompts are compared with ads by their beginning. */
const PROMPT_CHARS_MAX = 2000;
/** Ads of unknown categories taken in one turn of the event loop. */
const TURN_ADS = 500;

interface IndexedAd {
  readonly ad: Ad;
  /** Direction of meaning of what the ad says of itself. */
  readonly meaning: Float32Array;
}

interface Shelf {
  readonly ads: readonly IndexedAd[];
  readonly index: CategoryIndex;
}

/**
 * Relevance without anything to download: which category a prompt needs is read by the fitted model; which ads of
 * it fit best, by BM25 and by the closeness of their meaning to the prompt's. Categories that the model doesn't
 * know are served where the prompt wants to buy something and has a keyword of the ad.
 */
export class LexicalRelevance implements Relevance {
  /** Made when first asked for, or in their turn after the start. */
  readonly #shelves = new Map<string, Shelf>();
  readonly #members: ReadonlyMap<string, readonly Ad[]>;
  readonly #model: PromptModel;
  readonly #terms = new TermReader();
  readonly #unknown = new KeywordAnchors(this.#terms);

  private constructor(ads: readonly Ad[], model: PromptModel) {
    this.#members = Map.groupBy(ads, ({ category }) => category);
    this.#model = model;
  }

  /**
   * Resolves before the shelves of known categories are made, so that a long catalogue is served at once: they
   * follow one a turn of the event loop, and each at once if a prompt needs it.
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
    void relevance.#makeShelves();
    return relevance;
  }

  async rank(question: Question): Promise<readonly ScoredAd[]> {
    return [...this.#ofKnownCategories(question), ...this.#ofUnknownCategories(question)].sort(
      (a, b) => b.score - a.score,
    );
  }

  async #makeShelves(): Promise<void> {
    for (const category of this.#members.keys()) {
      await turn();
      this.#shelfOf(category);
    }
  }

  #shelfOf(category: string): Shelf | undefined {
    const members = this.#members.get(category);
    if (members === undefined || this.#shelves.has(category)) {
      return this.#shelves.get(category);
    }
    const shelf = {
      ads: members.map((ad) => ({ ad, meaning: meaningOf(ad, this.#model) })),
      index: new CategoryIndex(members, this.#terms),
    };
    this.#shelves.set(category, shelf);
    return shelf;
  }

  #ofKnownCategories({ prompt, language, reading }: Question): ScoredAd[] {
    const categories = needCategories(reading, language, LEXICAL_THRESHOLDS);
    const terms = categories.length === 0 ? [] : this.#terms.termsOf(prompt.slice(0, PROMPT_CHARS_MAX));
    return categories.flatMap(({ category, share }) => {
      const shelf = this.#shelfOf(category);
      const found = shelf?.index.search(terms);
      return (shelf?.ads ?? []).map(({ ad, meaning }) => ({
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
      score: ANCHORED_SCORE,
    }));
  }
}

/** BM25 and meaning in equal parts, so scaled that no ad of a needed category is worth less than half the best. */
function fitOf(wordShare: number, meaningShare: number): number {
  return 1 - FIT_SHARE + (FIT_SHARE * (wordShare + meaningShare)) / 2;
}

/** From 0 to 1; opposite directions count as none. */
function closeness(a: Float32Array, b: Float32Array): number {
  return Math.min(1, Math.max(0, dotProduct(a, b)));
}

function meaningOf(ad: Ad, model: PromptModel): Float32Array {
  const text = [ad.product_name, ad.description, ...ad.keywords].join(". ");
  return model.vectors.meaningOf(dictionaryWords(wordsOfPrompt(readableText(text))));
}
