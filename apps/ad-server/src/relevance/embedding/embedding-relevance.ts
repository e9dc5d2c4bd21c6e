import type { Ad } from "../../catalog/ad.ts";
import type { PromptReading } from "../../prompt-model/prompt-model.ts";
import { type Question, type Relevance, type ScoredAd, wishShare } from "../relevance.ts";
import { DirectionTable } from "./direction-table.ts";
import type { Embedder, EmbedRefusal } from "./embedder.ts";
import { REFERENCE_TEXTS } from "./reference-texts.ts";
import { loadTextVectors, type VectorCache } from "./text-vectors.ts";

/** Chosen on testdata/prompts-heldout.jsonl. Closeness is in standard deviations: it compares between models. */
const EMBEDDING_THRESHOLDS = {
  /** Share of wishes to buy among these and none. */
  wishMin: 0.4,
  /** Share of the ad's category among all wishes; for one that the model doesn't know, of wishes for others. */
  shareMin: 0.2,
  /** With the prompt model's word for the category the ad need not stand out as far as without it. */
  closenessMin: { known: 1.5, unknown: 2.5 },
  /** An ad that is much farther from the prompt than the best is no substitute for it. */
  ofBestMin: 0.7,
  /** From here on an ad is as relevant as can be. */
  closenessFull: 6,
} as const;

/** Of fewer ads the mean says little; then what is sold in general is the background. */
const BACKGROUND_ADS_MIN = 30;

export interface EmbeddingRelevanceOptions {
  readonly cache: VectorCache;
  /** Categories that the prompt model knows needs of. */
  readonly knownCategories: readonly string[];
  /** Languages that the embedding model was made for, ISO 639-1. */
  readonly languages: readonly string[];
  /** Ranks prompts in other languages. */
  readonly otherLanguages: Relevance;
  /** A prompt is given up after that; then there is no ad. */
  readonly timeoutMs: number;
  readonly onRefused: (reason: EmbedRefusal) => void;
}

interface IndexedAds {
  readonly ads: readonly Ad[];
  /** The ads in their order, and behind them what joins the background. */
  readonly background: DirectionTable;
}

/**
 * Relevance by sentence embeddings. The prompt model says whether there is a wish to buy, and which categories
 * can't be meant; of the other ads those are relevant that are much closer to the prompt than ads are on average.
 * Not guaranteed: that a catalogue of one kind of thing only has ads that stand out.
 */
export class EmbeddingRelevance implements Relevance {
  readonly #indexed: IndexedAds;
  readonly #embedder: Embedder;
  readonly #known: ReadonlySet<string>;
  readonly #options: EmbeddingRelevanceOptions;

  private constructor(indexed: IndexedAds, options: EmbeddingRelevanceOptions) {
    this.#indexed = indexed;
    this.#embedder = options.cache.embedder;
    this.#known = new Set(options.knownCategories);
    this.#options = options;
  }

  /** Embeds the ads, or takes their vectors from the cache. */
  static async of(ads: readonly Ad[], options: EmbeddingRelevanceOptions): Promise<EmbeddingRelevance> {
    const references = ads.length < BACKGROUND_ADS_MIN ? REFERENCE_TEXTS : [];
    const vectors = await loadTextVectors([...ads.map(textOf), ...references], options.cache);
    const background = new DirectionTable(vectors, options.cache.embedder.dimensions);
    return new EmbeddingRelevance({ ads, background }, options);
  }

  async rank(question: Question): Promise<readonly ScoredAd[]> {
    const { languages, otherLanguages, timeoutMs, onRefused } = this.#options;
    if (!languages.includes(question.language)) {
      return otherLanguages.rank(question);
    }
    if (wishShare(question.reading) < EMBEDDING_THRESHOLDS.wishMin) {
      return [];
    }
    const embedded = await this.#embedder.embed(question.prompt, "query", timeoutMs);
    if (embedded.kind === "refused") {
      onRefused(embedded.reason);
      return [];
    }
    return this.#rankByCloseness(embedded.vector, question.reading);
  }

  #rankByCloseness(direction: Float32Array, reading: PromptReading): ScoredAd[] {
    const { ads, background } = this.#indexed;
    const cosines = background.cosines(direction);
    const { mean, deviation } = spreadOf(cosines);
    const closenessMinOf = this.#closenessMins(reading);
    const { ofBestMin, closenessFull } = EMBEDDING_THRESHOLDS;
    const close = ads
      .flatMap((ad, row) => {
        const closeness = deviation === 0 ? 0 : ((cosines[row] ?? 0) - mean) / deviation;
        return closeness >= closenessMinOf(ad.category) ? [{ ad, closeness }] : [];
      })
      .sort((a, b) => b.closeness - a.closeness);
    const floor = (close[0]?.closeness ?? 0) * ofBestMin;
    return close
      .filter(({ closeness }) => closeness >= floor)
      .map(({ ad, closeness }) => ({ ad, score: Math.min(1, closeness / closenessFull) }));
  }

  /** How far an ad of a category must stand out; none does where the category can't be meant. */
  #closenessMins({ needs, otherNeed }: PromptReading): (category: string) => number {
    const wishes = [...needs.values()].reduce((sum, probability) => sum + probability, otherNeed);
    const { shareMin, closenessMin } = EMBEDDING_THRESHOLDS;
    return (category) => {
      const isKnown = this.#known.has(category);
      const meant = isKnown ? (needs.get(category) ?? 0) : otherNeed;
      if (meant < wishes * shareMin) {
        return Number.POSITIVE_INFINITY;
      }
      return isKnown ? closenessMin.known : closenessMin.unknown;
    };
  }
}

function textOf({ product_name, description, keywords }: Ad): string {
  return `${product_name}. ${description} ${keywords.join(", ")}`;
}

function spreadOf(values: Float32Array) {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  return { mean, deviation: Math.sqrt(variance) };
}
