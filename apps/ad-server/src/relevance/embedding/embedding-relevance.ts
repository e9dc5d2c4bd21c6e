import type { Ad } from "../../catalog/ad.ts";
import type { PromptReading } from "../../prompt-model/prompt-model.ts";
import { type Question, type Relevance, type ScoredAd, wishShare } from "../relevance.ts";
import type { Embedder, EmbedRefusal } from "./embedding-pool.ts";
import { loadTextVectors, type VectorCache } from "./text-vectors.ts";

/**
 * Chosen on ad-model/testdata/prompts-heldout.jsonl. The unit of closeness is a standard deviation, so that it suits
 * every model.
 */
const EMBEDDING_THRESHOLDS = {
  /** Least probability that the prompt wishes to buy something, compared with having nothing to sell. */
  wishMin: 0.4,
  /** Least share of the ad's category in all wishes. A category that the model doesn't know has the share of other needs. */
  shareMin: 0.2,
  /** An ad of a category that the prompt model knows need not stand out as much. */
  closenessMin: { known: 1.5, unknown: 2.5 },
  /** Least closeness compared with the best ad: an ad that is much less close is no substitute for it. */
  ofBestMin: 0.7,
  /** At this closeness an ad has the full relevance of 1. */
  closenessFull: 6,
} as const;

/** The mean of fewer ads says little. Then REFERENCE_TEXTS are part of the background. */
const BACKGROUND_ADS_MIN = 30;

export interface EmbeddingRelevanceOptions {
  readonly cache: VectorCache;
  /** Categories whose needs the prompt model knows. */
  readonly knownCategories: readonly string[];
  /** Languages that the embedding model was made for, ISO 639-1. */
  readonly languages: readonly string[];
  /** Ranks prompts in other languages. */
  readonly otherLanguages: Relevance;
  /** A prompt that has no vector after this time gets no ad. */
  readonly timeoutMs: number;
  readonly onRefused: (reason: EmbedRefusal) => void;
}

interface IndexedAds {
  readonly ads: readonly Ad[];
  /** Directions of the ads in their order, followed by those of the reference texts. */
  readonly background: DirectionTable;
}

/**
 * Relevance by sentence embeddings. The prompt model decides whether there is a wish to buy, and which categories can't
 * be meant. Of the other ads, an ad is relevant if it is much closer to the prompt than ads are on average. Not
 * guaranteed: if a catalogue has only one kind of product, perhaps no ad stands out.
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

  /** How far an ad of a category must stand out; infinitely far if the category can't be meant. */
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

/** Directions, row by row in one array, because a prompt is compared with thousands of them. */
class DirectionTable {
  readonly #rows: Float32Array;
  readonly #dimensions: number;

  constructor(directions: readonly Float32Array[], dimensions: number) {
    this.#dimensions = dimensions;
    this.#rows = new Float32Array(directions.length * dimensions);
    for (const [row, direction] of directions.entries()) {
      this.#rows.set(direction, row * dimensions);
    }
  }

  /** The cosine between a direction and each row, in the order of the rows. */
  cosines(direction: Float32Array): Float32Array {
    const cosines = new Float32Array(this.#rows.length / this.#dimensions);
    for (let row = 0; row < cosines.length; row += 1) {
      let sum = 0;
      const start = row * this.#dimensions;
      for (let dimension = 0; dimension < this.#dimensions; dimension += 1) {
        sum += (this.#rows[start + dimension] ?? 0) * (direction[dimension] ?? 0);
      }
      cosines[row] = sum;
    }
    return cosines;
  }
}

/**
 * Products of all kinds, written like ads. The closeness of a prompt to these texts shows how close any ad would be to it
 * by chance. So even a catalogue of three ads has a background to stand out from.
 */
export const REFERENCE_TEXTS = [
  "Comfortable shoes for every day. footwear, shoes",
  "Warm jackets and coats for cold weather. clothing, outerwear",
  "A tent and a backpack for trips outdoors. camping, outdoors",
  "Dinner ingredients delivered with recipes. food, cooking",
  "Freshly roasted coffee beans by mail. coffee, drinks",
  "A website for a small shop, made in an hour. web, software",
  "Accounting for small firms. bookkeeping, invoices",
  "Language lessons with a teacher online. learning, languages",
  "Tutoring in mathematics for pupils. school, exams",
  "Flights at low prices. travel, airline",
  "Hotel rooms in the middle of the city. travel, accommodation",
  "Cars for rent by the day. car hire, travel",
  "Insurance for your home and what is in it. insurance",
  "A bank account without fees. banking, money",
  "A loan at a fixed rate. credit, finance",
  "A phone with a good camera. electronics, mobile",
  "A quiet laptop for work and study. computer, electronics",
  "Headphones that keep noise out. audio, music",
  "A guitar for those who start. music, instrument",
  "A lamp for the desk. furniture, home",
  "A firm mattress for good sleep. bed, bedroom",
  "Paint and tools for the walls at home. renovation, tools",
  "Seeds and soil for the garden. plants, gardening",
  "Food for dogs and cats. pets, animals",
  "Toys for small children. kids, family",
  "Cream for dry skin. beauty, cosmetics",
  "Vitamins for every day. health, supplements",
  "A gym with classes in the evening. fitness, sport",
  "A bicycle for the way to work. cycling, commuting",
  "Winter tyres, mounted while you wait. car, workshop",
  "A lawyer for contracts. legal advice, documents",
  "A job board for engineers. career, hiring",
  "A dating app for people who mean it. dating, relationships",
  "A novel for the weekend. books, reading",
  "Films and series at home. streaming, television",
  "A video game for two players. gaming, console",
  "Tickets for concerts and the theatre. events, culture",
  "Solar panels for the roof. energy, electricity",
  "A moving firm that packs for you. removal, transport",
  "Photos of your wedding. photography, celebration",
] as const;
