import { dictionaryWords, foldSpelling, wordsOfText } from "../prompt-model/text-words.ts";
import type { WordVectors } from "../prompt-model/word-vectors.ts";

/** Words count as the same if they begin with the same letters: plurals, cases and verb forms differ at the end. */
const STEM_CHARS = 5;
/** Commoner words, such as "for" and "best", say nothing of what is wanted. From 0 to 1; see WordVectors.weightOf. */
const WEIGHT_MIN = 0.3;

type WordWeights = Pick<WordVectors, "weightOf">;

/** A keyword as the stems of its words, each with its weight. */
type StemmedKeyword = ReadonlyMap<string, number>;

/** The stems of a prompt's words. */
export function stemsOf(prompt: string): ReadonlySet<string> {
  return new Set(dictionaryWords(wordsOfText(foldSpelling(prompt))).map(stemOf));
}

/** Reads an ad's keywords. Words that any prompt may contain are left out, and so are keywords of nothing else. */
export function stemmedKeywords(keywords: readonly string[], weights: WordWeights): StemmedKeyword[] {
  // All at once, one on each line, since folding many short texts takes ten times as long.
  const lines = foldSpelling(keywords.map((keyword) => keyword.replaceAll("\n", " ")).join("\n")).split("\n");
  return lines
    .map((line) => {
      const words = dictionaryWords(wordsOfText(line)).map((word) => [word, weights.weightOf(word)] as const);
      return new Map(
        words.filter(([, weight]) => weight >= WEIGHT_MIN).map(([word, weight]) => [stemOf(word), weight]),
      );
    })
    .filter((keyword) => keyword.size > 0);
}

/** How much of the keyword that a prompt has most of is in the prompt, from 0 to 1. Rare words count more. */
export function keywordShare(stems: ReadonlySet<string>, keywords: readonly StemmedKeyword[]): number {
  let best = 0;
  for (const keyword of keywords) {
    let [found, all] = [0, 0];
    for (const [stem, weight] of keyword) {
      all += weight;
      found += stems.has(stem) ? weight : 0;
    }
    best = Math.max(best, found / all);
  }
  return best;
}

function stemOf(word: string): string {
  return word.replace(/(?<=\p{Script=Latin}{3})s$/u, "").slice(0, STEM_CHARS);
}
