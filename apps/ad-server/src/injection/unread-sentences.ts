import { turnsOfMessages } from "../prompt-model/message-turns.ts";
import { sentencesOf, turnsOfTranscript } from "../prompt-model/prompt-parts.ts";
import { headAndTail, readableText, wordsOfText } from "../prompt-model/text-words.ts";
import type { WordVectors } from "../prompt-model/word-vectors.ts";
import { loadLanguageScores, MODEL_LANGUAGES, type ScoreLanguages, withoutCode } from "./prompt-language.ts";

/** Of a longer prompt only the beginning and the end are looked at, so that the work is bounded. */
const READ_CHARS_END = 8000;
/** Sentences whose language is looked for. */
const DETECTED_MAX = 24;
const SENTENCE_CHARS_MAX = 300;
/** Fewer words may be a name. */
const WORDS_MIN = 3;
/** The least that so many words have, with blanks between them. */
const SENTENCE_CHARS_MIN = 2 * WORDS_MIN - 1;
const UNKNOWN_WORDS_MIN = 2;
/** A name or a loan word is beside known words. */
const KNOWN_SHARE_MAX = 0.9;
/** If a language of the model has nearly the best score, the sentence may be of that language. */
const MODEL_OF_BEST_MAX = 0.88;
/** Letters of unread scripts in a sentence of them, and in any sentence: a cry for help may have no full stop. */
const UNREAD_LETTERS_MIN = 4;
const UNREAD_RUN_LETTERS_MIN = 12;

const LETTER = /\p{L}/gu;
/** Letters of scripts that the model wasn't fitted to. */
const UNREAD_LETTER =
  /[\p{L}--[\p{Script=Latin}\p{Script=Devanagari}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Common}\p{Script=Inherited}]]/gv;
const KANA = /[\p{Script=Hiragana}\p{Script=Katakana}]/u;
const HAN = /\p{Script=Han}/gu;
/** Common Chinese characters that Japanese texts hardly ever have without kana beside them. */
const CHINESE = /[我你您她们們这這哪吗嗎呢吧没还還么麼让给过个為为对时爸妈媽爷爺奶很怎杀丧债钱药诊说]/u;
const HAN_MIN = 3;

/** Whether a prompt has a sentence that the model can't read. Then nobody knows whether an ad may stand beside it. */
export type HasUnreadSentence = (prompt: string) => boolean;

type KnownWords = Pick<WordVectors, "knows">;

/**
 * The model reads seven languages. A cry for help in any other one says nothing to it. Such a sentence is found by its
 * script, or by its words: few of them are known, and the detector finds a language that isn't of the model.
 */
export async function loadUnreadSentences(words: KnownWords): Promise<HasUnreadSentence> {
  const scoreLanguages = await loadLanguageScores();
  return (prompt) => {
    const turns =
      turnsOfMessages(prompt, READ_CHARS_END)?.map((turn) => ({ ...turn, text: withoutCode(turn.text) })) ??
      turnsOfTranscript(withoutCode(headAndTail(prompt, READ_CHARS_END, READ_CHARS_END)));
    const sentences = turns.filter(({ isUser }) => isUser).flatMap(({ text }) => sentencesOf(text));
    return (
      sentences.some(hasUnreadScript) ||
      sentences
        .filter((sentence) => hasUnknownWords(sentence, words))
        .slice(0, DETECTED_MAX)
        .some((sentence) => isForeign(sentence.slice(0, SENTENCE_CHARS_MAX), scoreLanguages))
    );
  };
}

function hasUnreadScript(sentence: string): boolean {
  if (sentence.length < HAN_MIN) {
    return false;
  }
  const unread = countOf(sentence, UNREAD_LETTER);
  const isChinese = CHINESE.test(sentence) && !KANA.test(sentence) && countOf(sentence, HAN) >= HAN_MIN;
  return (
    isChinese ||
    unread >= UNREAD_RUN_LETTERS_MIN ||
    (unread >= UNREAD_LETTERS_MIN && 2 * unread >= countOf(sentence, LETTER))
  );
}

function countOf(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}

function hasUnknownWords(sentence: string, words: KnownWords): boolean {
  if (sentence.length < SENTENCE_CHARS_MIN) {
    return false;
  }
  const written = wordsOfText(readableText(sentence)).filter(
    ({ text, unspaced }) => !unspaced && /^\p{L}/u.test(text),
  );
  const unknown = written.filter(({ text }) => !words.knows(text)).length;
  return (
    written.length >= WORDS_MIN &&
    unknown >= UNKNOWN_WORDS_MIN &&
    unknown > (1 - KNOWN_SHARE_MAX) * written.length
  );
}

function isForeign(sentence: string, scoreLanguages: ScoreLanguages): boolean {
  const scores = scoreLanguages(sentence);
  const best = Math.max(0, ...scores.values());
  const ofModel = Math.max(0, ...[...MODEL_LANGUAGES].map((language) => scores.get(language) ?? 0));
  return best > 0 && ofModel < MODEL_OF_BEST_MAX * best;
}
