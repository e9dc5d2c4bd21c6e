import { normalizable } from "@adrelay/core";

/** Of a long prompt only the beginning and the end are read, so that the work is bounded. */
const READ_CHARS_HEAD = 1200;
const READ_CHARS_TAIL = 600;

const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}'\u30fc]*/gu;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u30fc]/u;
/** French joins short words to the next word: l'hiver, d'occasion, qu'on. */
const ELISION = /^(?:[cdjlmnst]|qu)'(?=.{2})/u;

/** A run of letters of a prompt. */
export interface PromptWord {
  readonly text: string;
  /** The run is in a script that puts no blanks between words, so it can hold several words. */
  readonly unspaced: boolean;
}

/** The part of a prompt that is read, with its spelling folded. */
export function readableText(prompt: string): string {
  // Folding can make a text several times as long.
  return endsOf(foldSpelling(endsOf(prompt)));
}

function endsOf(text: string): string {
  return headAndTail(text, READ_CHARS_HEAD, READ_CHARS_TAIL);
}

/** The beginning and the end of a text, as many characters of each; a text that is no longer stays whole. */
export function headAndTail(text: string, head: number, tail: number): string {
  return text.length <= head + tail ? text : `${text.slice(0, head)}\n${text.slice(-tail)}`;
}

/** Gives variants of a word the same spelling: differences of width, case, Latin accents and apostrophes go. */
export function foldSpelling(text: string): string {
  return normalizable(text)
    .normalize("NFKC")
    .replace(/\p{Cf}/gu, "")
    .toLowerCase()
    .normalize("NFKD")
    .replace(/(\p{Script=Latin})\p{M}+/gu, "$1")
    .normalize("NFC")
    .replaceAll("\u00df", "ss")
    .replace(/[\u2018\u2019`\u00b4]/gu, "'");
}

/** The words of a folded text, in order. */
export function wordsOfText(folded: string): PromptWord[] {
  return Array.from(folded.matchAll(WORD), ([run]) => {
    const unspaced = UNSPACED.test(run);
    return { text: unspaced ? run : bareWord(run), unspaced };
  });
}

/** Removes the apostrophes and endings that no dictionary has. */
function bareWord(run: string): string {
  return run
    .replace(/(?<!')'+$/u, "")
    .replace(ELISION, "")
    .replace(/'s$/u, "");
}

const segmenter = new Intl.Segmenter("ja", { granularity: "word" });

/** Words as a dictionary has them: Node's segmenter cuts the runs that have no blanks between words. */
export function dictionaryWords(words: readonly PromptWord[]): string[] {
  return words.flatMap(({ text, unspaced }) =>
    unspaced ? Array.from(segmenter.segment(text), ({ segment }) => segment) : [text],
  );
}
