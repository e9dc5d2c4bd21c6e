/** Long prompts are read by their beginning and their end, so that the work stays bounded. */
const READ_CHARS_HEAD = 1200;
const READ_CHARS_TAIL = 600;

const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}'\u30fc]*/gu;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u30fc]/u;
/** French glues its little words to the next one: l'hiver, d'occasion, qu'on. */
const ELISION = /^(?:[cdjlmnst]|qu)'(?=.{2})/u;

/** A run of letters as the prompt has it. `unspaced` ones are of scripts that put no blanks between words. */
export interface PromptWord {
  readonly text: string;
  readonly unspaced: boolean;
}

/** The part of a prompt that is read, in one spelling. */
export function readableText(prompt: string): string {
  const part =
    prompt.length <= READ_CHARS_HEAD + READ_CHARS_TAIL
      ? prompt
      : `${prompt.slice(0, READ_CHARS_HEAD)}\n${prompt.slice(-READ_CHARS_TAIL)}`;
  return foldSpelling(part);
}

/** One spelling for what keyboards spell in many ways: width, case, accents of Latin letters, apostrophes. */
export function foldSpelling(text: string): string {
  return text
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
export function wordsOfPrompt(folded: string): PromptWord[] {
  return Array.from(folded.matchAll(WORD), ([run]) => {
    const unspaced = UNSPACED.test(run);
    return { text: unspaced ? run : bareWord(run), unspaced };
  });
}

/** Without the apostrophes and endings that no dictionary has. */
function bareWord(run: string): string {
  return run.replace(/'+$/u, "").replace(ELISION, "").replace(/'s$/u, "");
}

const segmenter = new Intl.Segmenter("ja", { granularity: "word" });

/** Words as a dictionary has them: runs without blanks are cut by the runtime's segmenter. */
export function dictionaryWords(words: readonly PromptWord[]): string[] {
  return words.flatMap(({ text, unspaced }) =>
    unspaced ? Array.from(segmenter.segment(text), ({ segment }) => segment) : [text],
  );
}
