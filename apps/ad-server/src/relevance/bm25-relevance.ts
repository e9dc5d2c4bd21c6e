import MiniSearch from "minisearch";
import type { Ad } from "../catalog/ad.ts";
import type { Relevance, ScoredAd } from "./relevance.ts";
import { termOf, termsOf, wordsOf } from "./terms.ts";

/** How a category is spoken of, in any language: category to phrases. Optional knowledge beside the ads. */
export type Vocabulary = ReadonlyMap<string, readonly string[]>;

/** Prompts are ranked by their beginning: a need stands there, and the work stays bounded. */
const PROMPT_CHARS_MAX = 20_000;
const FIELD_BOOSTS = { keywords: 3, category: 2, vocabulary: 2, description: 1 } as const;
/**
 * The weaker the anchor, the more the other words must say. Scores are BM25 sums divided by the root of the
 * prompt's number of terms, so that short and long prompts compare.
 */
const SCORE_MINS = { vocabulary: 1, phrase: 15, word: 25 } as const;
const SENTENCE_END = /[.!?]+(?=\s|$)|[\n\u3002\uff01\uff1f\u0964]+/u;
/** An ad of another category that is much farther from the prompt than the best ad is no substitute for it. */
const SHARE_OF_BEST_MIN = 0.5;

interface Anchor {
  readonly terms: readonly string[];
  readonly scoreMin: number;
}

interface IndexedAd {
  readonly ad: Ad;
  readonly anchors: readonly Anchor[];
}

/**
 * BM25 over what the advertiser says of the product. Words alone are weak evidence ("run", "stay"), so an
 * ad also needs an anchor: one of its keywords, its category or a phrase of the vocabulary, wholly in one
 * sentence. Not guaranteed: that the prompt wants to buy; "when were running shoes invented" has an anchor.
 */
export class Bm25Relevance implements Relevance {
  readonly #index = new MiniSearch({
    fields: Object.keys(FIELD_BOOSTS),
    tokenize: wordsOf,
    processTerm: termOf,
    searchOptions: { combineWith: "OR", boost: FIELD_BOOSTS },
  });
  readonly #ads = new Map<unknown, IndexedAd>();

  constructor(ads: readonly Ad[], vocabulary: Vocabulary = new Map()) {
    for (const ad of ads) {
      const category = ad.category.replaceAll("-", " ");
      const spoken = vocabulary.get(ad.category) ?? [];
      this.#ads.set(ad.id, { ad, anchors: anchorsOf([...ad.keywords, category], spoken) });
      this.#index.add({
        id: ad.id,
        keywords: ad.keywords.join("\n"),
        category,
        vocabulary: spoken.join("\n"),
        description: ad.description,
      });
    }
  }

  rank(prompt: string): readonly ScoredAd[] {
    const text = prompt.slice(0, PROMPT_CHARS_MAX);
    const sentences = text.split(SENTENCE_END).map((sentence) => new Set(termsOf(sentence)));
    const termCount = new Set(sentences.flatMap((sentence) => [...sentence])).size;
    const found = this.#index.search(text).flatMap(({ id, score: sum }) => {
      const indexed = this.#ads.get(id);
      const score = sum / Math.sqrt(termCount);
      return indexed !== undefined && isAnchored(indexed, sentences, score)
        ? [{ ad: indexed.ad, score }]
        : [];
    });
    const [best] = found;
    return found
      .map(({ ad, score }) => ({ ad, score: score / (best?.score ?? score) }))
      .filter(({ ad, score }) => ad.category === best?.ad.category || score >= SHARE_OF_BEST_MIN);
  }
}

function isAnchored(
  { anchors }: IndexedAd,
  sentences: readonly ReadonlySet<string>[],
  score: number,
): boolean {
  return anchors.some(
    ({ terms, scoreMin }) =>
      score >= scoreMin && sentences.some((sentence) => terms.every((term) => sentence.has(term))),
  );
}

function anchorsOf(said: readonly string[], spoken: readonly string[]): Anchor[] {
  return [
    ...said.flatMap((phrase) => {
      const terms = anchorTerms(phrase);
      return terms.length === 0
        ? []
        : [{ terms, scoreMin: terms.length > 1 ? SCORE_MINS.phrase : SCORE_MINS.word }];
    }),
    ...spoken.flatMap((phrase) => {
      const terms = anchorTerms(phrase);
      return terms.length === 0 ? [] : [{ terms, scoreMin: SCORE_MINS.vocabulary }];
    }),
  ];
}

/** The terms of a phrase; none if stop words leave one bare word of it ("where to stay"). */
function anchorTerms(phrase: string): string[] {
  const terms = termsOf(phrase);
  return terms.length === 1 && wordsOf(phrase).length > 1 ? [] : terms;
}
