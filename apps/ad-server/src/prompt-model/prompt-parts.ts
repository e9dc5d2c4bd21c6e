/*
 * Cuts a prompt into parts that are judged on their own: a harmless wish before or behind a cry for help must not
 * outweigh it.
 */

import { turnsOfMessages } from "./message-turns.ts";
import { isUsersName, OTHER, type Turn, USER } from "./speakers.ts";
import { headAndTail } from "./text-words.ts";

/** What transcripts put before and behind a speaker's name. */
const MARK = "(?:#{1,6} ?|\\*\\*|\\[|<\\|im_start\\|>|<\\|)";
const MARK_END = "(?:\\*\\*|\\]|\\|>)?";
/**
 * The start of a turn. It is a speaker's name with a mark before it or at the beginning of a line, and a colon or the end
 * of the line after it; or a capitalised name with a colon within a line; or the role of a message in JSON. A word such
 * as "me:" within a line is none: whatever is taken for the assistant's words isn't judged.
 *
 * No part repeats without a bound, so the search takes time in proportion to the prompt.
 */
const TURN_START = new RegExp(
  [
    `(?<![^\\n\\r])[ \\t>*"'-]{0,4}${MARK}?(${USER}|${OTHER})${MARK_END} ?[:：\\n](?:\\*\\*)?`,
    `(?<![^\\s\\]>}|])${MARK}(${USER}|${OTHER})${MARK_END} ?[:：\\n](?:\\*\\*)?`,
    `(?<![^\\s\\]>}|])(?=(?-i:[\\p{Lu}\\p{Lo}]))(${USER}|${OTHER}) ?[:：]`,
    `"role"\\s{0,20}:\\s{0,20}"(${USER}|${OTHER})"(?:\\s{0,20},\\s{0,20}"content"\\s{0,20}:\\s{0,20})?`,
  ].join("|"),
  "giu",
);
/**
 * The turns of a transcript or of messages, in order. Text before the first speaker counts as the user's.
 *
 * @param charsEnd of a longer prompt, as many characters of the beginning and of the end are read
 */
export function turnsOf(prompt: string, charsEnd = Number.POSITIVE_INFINITY): Turn[] {
  return turnsOfMessages(prompt, charsEnd) ?? turnsOfTranscript(headAndTail(prompt, charsEnd, charsEnd));
}

/** The same of a prompt that isn't JSON as a whole. */
export function turnsOfTranscript(written: string): Turn[] {
  const prompt = written.replace(JSON_ESCAPE, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
  if (isRoleBehindText(prompt)) {
    return [{ isUser: true, text: prompt }];
  }
  const starts = [...prompt.matchAll(TURN_START)].map((match) => ({
    isUser: isUsersName(match.slice(1).find((name) => name !== undefined) ?? "") === true,
    from: match.index,
    textFrom: match.index + match[0].length,
  }));
  const isTranscript = starts.some(({ isUser }) => isUser);
  if (!isTranscript) {
    return [{ isUser: true, text: prompt }];
  }
  const turns = starts.map(({ isUser, textFrom }, index) => ({
    isUser,
    text: prompt.slice(textFrom, starts[index + 1]?.from),
  }));
  return [{ isUser: true, text: prompt.slice(0, starts[0]?.from) }, ...turns].filter(
    ({ text }) => text.trim() !== "",
  );
}

/** As many programs write every letter beyond ASCII in JSON. */
const JSON_ESCAPE = /\\u([\da-f]{4})/gi;

/** Whether messages in JSON have their roles behind their texts. Then a pattern can't tell which text is whose. */
function isRoleBehindText(prompt: string): boolean {
  const role = prompt.search(/"role"\s{0,20}:/);
  const text = prompt.search(/"(?:content|parts)"\s{0,20}:/);
  return text !== -1 && text < role;
}

/**
 * Ends of sentences and of lines, also as strings of JSON write them. A blank must follow a full stop, so that "3.5" and
 * "example.com" stay whole.
 */
const SENTENCE_END = /(?<=[.!?…]["'”’»)\]]?)\s+|(?<=[。！？।｡])|[\n\r\u2028\u2029]+|\\[nr]|;\s/u;
const CLAUSE_END = /[,،、，:：–—]\s*|\s-\s/u;
/** A sentence with more clauses than this is a list: each of its items is judged on its own. */
const CLAUSES_MAX = 3;
/** A longer run of words without punctuation is cut into overlapping windows. */
const WINDOW_WORDS = 30;

/** The sentences of a text, and the items of sentences that are lists. */
export function sentencesOf(text: string): string[] {
  return text
    .split(SENTENCE_END)
    .filter((sentence) => /\p{L}/u.test(sentence))
    .flatMap((sentence) => [...itemsOf(sentence), ...windowsOf(sentence)]);
}

/** A shorter run of words says too little to be judged on its own. */
const RUN_WORDS_MIN = 3;
/** Words of a run in a sentence without punctuation, and how far the next run starts behind it. */
const RUN_WORDS = 6;
const RUN_STEP = 3;

/**
 * The clauses of a sentence, and overlapping runs of its words: people often write a whole message without a full stop.
 * They say less than a sentence does, so more is asked of them.
 */
export function runsOf(sentence: string): string[] {
  return sentence.split(CLAUSE_END).flatMap((clause) => {
    const words = clause.split(/\s+/u).filter((word) => word !== "");
    if (words.length <= RUN_WORDS + RUN_STEP) {
      return words.length < RUN_WORDS_MIN ? [] : [clause];
    }
    return cutWords(words, RUN_WORDS, RUN_STEP);
  });
}

/** Words of a span, and how far the next span starts behind it. */
const SPAN_WORDS = 10;
const SPAN_STEP = 4;

/** Overlapping spans of a longer sentence. A span may hold a sentence that no full stop parts from a wish. */
export function spansOf(sentence: string): string[] {
  const words = sentence.split(/\s+/u).filter((word) => word !== "");
  return words.length <= SPAN_WORDS ? [] : cutWords(words, SPAN_WORDS, SPAN_STEP);
}

/** Overlapping pieces of a run of words that is longer than a piece. */
function cutWords(words: readonly string[], size: number, step: number): string[] {
  const pieces = Math.ceil((words.length - size) / step) + 1;
  return Array.from({ length: pieces }, (_, index) =>
    words.slice(index * step, index * step + size).join(" "),
  );
}

function itemsOf(sentence: string): string[] {
  const clauses = sentence.split(CLAUSE_END).filter((clause) => /\p{L}/u.test(clause));
  return clauses.length > CLAUSES_MAX ? clauses : [];
}

function windowsOf(sentence: string): string[] {
  const words = sentence.split(/\s+/u);
  if (words.length <= WINDOW_WORDS) {
    return [sentence];
  }
  return cutWords(words, WINDOW_WORDS, WINDOW_WORDS / 2);
}
