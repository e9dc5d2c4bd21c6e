import MiniSearch from "minisearch";
import type { Ad } from "../catalog/ad.ts";
import type { TermReader } from "./terms.ts";

const FIELD_BOOSTS = { product_name: 3, keywords: 3, description: 1 } as const;
/** A prompt is looked up by its rarest terms only: they tell ads apart, and the work stays bounded. */
const QUERY_TERMS_MAX = 16;

/** The ads of one category with what each says of itself, for BM25. */
export class CategoryIndex {
  /** Texts come here as terms with blanks between them. */
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

  /** BM25 scores by the ads' ids, as shares of the best one's; ads without a word of the prompt are absent. */
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
