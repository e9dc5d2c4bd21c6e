import { foldSpelling, headAndTail } from "../prompt-model/text-words.ts";

/** Of a longer prompt only the beginning and the end are read, so that the work is bounded. */
const READ_CHARS_HEAD = 8000;
const READ_CHARS_TAIL = 4000;

/** The look-behind keeps the search from beginning within a run again. */
const SENTENCE_END = /(?<![.!?])[.!?]+(?=\s|$)|[\n\u3002\uff01\uff1f\u0964]+/u;
const UNSPACED_SCRIPTS = ["Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar"];
const UNSPACED_CLASS = `[${UNSPACED_SCRIPTS.map((script) => `\\p{Script=${script}}`).join("")}\\u30fc]`;
const UNSPACED = new RegExp(UNSPACED_CLASS, "v");
const TERM = new RegExp(
  `${UNSPACED_CLASS}+|[[\\p{L}\\p{N}]--${UNSPACED_CLASS}][[\\p{L}\\p{N}\\p{M}]--${UNSPACED_CLASS}]*`,
  "gv",
);
/** What English and French join to a word by an apostrophe: kid's, l'hiver, d'occasion. */
const JOINED = /(?<=[\p{L}\p{N}])'s(?![\p{L}\p{N}])|(?<![\p{L}\p{N}])(?:[cdjlmnst]|qu)'(?=\p{L})/gu;

/** Whether a term is of a script without blanks, so that it may hold several words, or be a part of one. */
export function isUnspaced(term: string): boolean {
  return UNSPACED.test(term);
}

/** The terms of each keyword: its folded words, and its runs of characters of scripts without blanks. */
export function termsOfKeywords(keywords: readonly string[]): string[][] {
  // All at once, one on each line, since folding many short texts takes ten times as long.
  const lines = foldWords(keywords.map((keyword) => keyword.replaceAll("\n", " ")).join("\n")).split("\n");
  return lines.map((line) => [...new Set(line.match(TERM))]);
}

/** The terms of a prompt, each once, with the numbers of the sentences that have it. */
export function termsOfPrompt(prompt: string): ReadonlyMap<string, ReadonlySet<number>> {
  const places = new Map<string, Set<number>>();
  for (const [place, sentence] of foldWords(headAndTail(prompt, READ_CHARS_HEAD, READ_CHARS_TAIL))
    .split(SENTENCE_END)
    .entries()) {
    for (const term of sentence.match(TERM) ?? []) {
      places.set(term, (places.get(term) ?? new Set()).add(place));
    }
  }
  return places;
}

function foldWords(text: string): string {
  return foldSpelling(text).replace(JOINED, "");
}
