import type { FieldFault } from "@adrelay/contract";
import { keywordKeys, NegativeKeywords } from "../relevance/negative-keywords.ts";
import type { Ad } from "./ad.ts";

/**
 * Likely mistakes in an ad's negative keywords: one that is in a keyword of the ad or in its category, so that the ad
 * isn't shown to those who want it; one that says what an earlier one says; one without a word.
 */
export function negativeKeywordWarnings(ad: Ad): FieldFault[] {
  const { negative_keywords = [], keywords, category } = ad;
  if (negative_keywords.length === 0) {
    return [];
  }
  // A sentence each. In English, since nobody knows the language of a keyword.
  const own = [...keywords, category].map((keyword) => keyword.replaceAll("\n", " ")).join("\n");
  const excluded = NegativeKeywords.of([ad]).keysIn({ prompt: own, language: "en" });
  const seen = new Set<string>();
  return keywordKeys(negative_keywords).flatMap((key, index) => {
    const isRepeated = seen.has(key);
    seen.add(key);
    const path = `negative_keywords.${index}`;
    if (key === "") {
      return [{ path, message: "has no word: it excludes no prompt" }];
    }
    return [
      ...(isRepeated ? [{ path, message: "says what an earlier negative keyword says" }] : []),
      ...(excluded.has(key)
        ? [
            {
              path,
              message: "is in a keyword of the ad or in its category: it excludes those who want the ad",
            },
          ]
        : []),
    ];
  });
}
