import { STOP_WORDS } from "./stop-words.ts";

/** Words whose terms are remembered: a catalogue says the same ones over and over. */
const REMEMBERED_MAX = 50_000;

/**
 * The terms of texts as indexes know them: folded, without stop words, English plurals and endings taken off.
 * Texts of scripts without blanks are cut by the runtime's own segmenter.
 */
export class TermReader {
  readonly #terms = new Map<string, string | undefined>();

  termsOf(text: string): string[] {
    return wordsOf(text).flatMap((word) => {
      const term = this.#termOf(word);
      return term === undefined ? [] : [term];
    });
  }

  #termOf(word: string): string | undefined {
    if (this.#terms.has(word)) {
      return this.#terms.get(word);
    }
    const term = termOf(word);
    if (this.#terms.size < REMEMBERED_MAX) {
      this.#terms.set(word, term);
    }
    return term;
  }
}

const SCRIPTS_WITHOUT_BLANKS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;

/** Splits a text into words. */
export function wordsOf(text: string): string[] {
  if (!SCRIPTS_WITHOUT_BLANKS.test(text)) {
    return text.match(WORD) ?? [];
  }
  const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });
  return [...segmenter.segment(text)].filter((part) => part.isWordLike).map((part) => part.segment);
}

/** The index term of one word; undefined for a stop word, a lone letter or a lone digit. */
function termOf(word: string): string | undefined {
  const folded = fold(word);
  return STOPPED.has(folded) || /^[a-z\d]$/.test(folded) ? undefined : stem(folded);
}

/** Lower case without accents. Marks stay in scripts where they are vowels. */
function fold(word: string): string {
  return word
    .normalize("NFKD")
    .replace(/(\p{Script=Latin})\p{M}+/gu, "$1")
    .normalize("NFKC")
    .toLowerCase();
}

const STOPPED: ReadonlySet<string> = new Set(
  Object.values(STOP_WORDS).flatMap((list) => list.split(/\s+/).map(fold)),
);

/** Endings that go, longest first, each with what must be left before it. */
const ENDINGS: readonly (readonly [ending: RegExp, replacement: string])[] = [
  [/^(.{3,})ies$/, "$1y"],
  [/^(.{3,}(?:s|x|z|ch|sh))es$/, "$1"],
  [/^(.{2,}[^su])s$/, "$1"],
];
const VERB_ENDING = /^(.*[aeiouy].*?[a-z])(?:ing|ed)$/;

/** A light stemmer for English; other languages only lose a plural s. */
function stem(word: string): string {
  // Longer than any word: the endings below would take a time that grows with its square.
  if (!/^[a-z]{4,40}$/.test(word)) {
    return word;
  }
  const singular = ENDINGS.reduce((text, [ending, left]) => text.replace(ending, left), word);
  const root = VERB_ENDING.exec(singular)?.[1];
  if (root === undefined || root.length < 3) {
    return singular;
  }
  return root.replace(/([^aeiouls])\1$/, "$1").replace(/e$/, "");
}
