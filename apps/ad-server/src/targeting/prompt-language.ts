import { STOP_WORDS } from "../relevance/stop-words.ts";

/** Scripts that tell the language, as far as ads are sold for it. Kana before Han: Japanese uses both. */
const SCRIPTS: readonly (readonly [script: RegExp, language: string])[] = [
  [/[\p{Script=Hiragana}\p{Script=Katakana}]/u, "ja"],
  [/\p{Script=Han}/u, "zh"],
  [/\p{Script=Hangul}/u, "ko"],
  [/\p{Script=Devanagari}/u, "hi"],
  [/\p{Script=Arabic}/u, "ar"],
  [/\p{Script=Cyrillic}/u, "ru"],
];
const SAMPLE_CHARS = 2000;
/** A language must be ahead of the next by this many words, or nobody knows. */
const LEAD_MIN = 1;

const LATIN_WORDS = Object.entries(STOP_WORDS).map(
  ([language, list]) => [language, new Set(list.split(/\s+/))] as const,
);

/**
 * Guesses the language of a prompt from its script or its commonest words, ISO 639-1; undefined for
 * texts that are too short or mixed. A guess is enough to target an ad and for nothing else.
 */
export function guessLanguage(prompt: string): string | undefined {
  const sample = prompt.slice(0, SAMPLE_CHARS);
  const letters = sample.match(/\p{L}/gu)?.length ?? 0;
  const scripted = SCRIPTS.find(([script]) => countOf(sample, script) * 3 > letters);
  if (scripted !== undefined && letters > 0) {
    return scripted[1];
  }
  const words = sample.toLowerCase().match(/[\p{L}\p{M}]+/gu) ?? [];
  const [first, second] = LATIN_WORDS.map(
    ([language, common]) => [language, words.filter((word) => common.has(word)).length] as const,
  ).sort(([, a], [, b]) => b - a);
  return first !== undefined && second !== undefined && first[1] - second[1] >= LEAD_MIN
    ? first[0]
    : undefined;
}

function countOf(text: string, pattern: RegExp): number {
  return text.match(new RegExp(pattern.source, "gu"))?.length ?? 0;
}
