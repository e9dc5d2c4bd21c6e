import { dictionaryWords, type PromptWord, readableText, wordsOfText } from "./text-words.ts";
import type { WordVectors } from "./word-vectors.ts";

/** What the model sees of a prompt. */
export interface TextFeatures {
  /** Features are words, pairs of words, pieces of words, and marks. The key is the hash of the feature's name. */
  readonly sparse: ReadonlyMap<number, number>;
  /** Direction of the text's meaning, of length 1; see WordVectors. */
  readonly meaning: Float32Array;
}

/** All features of one kind together have this weight, however many of them a prompt has. */
const KIND_WEIGHTS = { word: 1, pair: 0.7, piece: 0.8 } as const;
type FeatureKind = keyof typeof KIND_WEIGHTS;
/** The weight of the meaning, beside those of the kinds. */
export const MEANING_WEIGHT = 4;

/** Lengths of the pieces of words, and of the pieces of runs in scripts that write no blanks. */
const PIECE_CHARS = 4;
const UNSPACED_PIECE_CHARS = [3, 4] as const;
/** Upper ends of the classes of length; the length of a prompt is its number of different words. */
const LENGTH_CLASSES = [3, 8, 20, 60] as const;

type Counts = Record<FeatureKind, Map<string, number>>;

/** Reads the features of a prompt. The same text gives the same features, in any process. */
export function featuresOf(prompt: string, vectors: WordVectors): TextFeatures {
  const words = wordsOfText(readableText(prompt));
  const counts: Counts = { word: new Map(), pair: new Map(), piece: new Map() };
  countWords(words, counts);
  for (const mark of marksOf(prompt, counts.word.size)) {
    count(counts, "word", mark);
  }
  return { sparse: weigh(counts), meaning: vectors.meaningOf(dictionaryWords(words)) };
}

function countWords(words: readonly PromptWord[], counts: Counts): void {
  let previous = "^";
  for (const { text, unspaced } of words) {
    if (unspaced) {
      countUnspaced([...text], counts);
      previous = "^";
      continue;
    }
    const isNumber = /^\d/.test(text);
    const word = isNumber ? "#" : text;
    count(counts, "word", word);
    count(counts, "pair", `${previous} ${word}`);
    previous = word;
    for (const piece of isNumber ? [] : piecesOfWord(`<${word}>`)) {
      count(counts, "piece", piece);
    }
  }
}

function countUnspaced(chars: readonly string[], counts: Counts): void {
  for (const char of chars) {
    count(counts, "word", char);
  }
  for (const pair of piecesOf(chars, 2)) {
    count(counts, "pair", pair);
  }
  for (const piece of UNSPACED_PIECE_CHARS.flatMap((length) => piecesOf(chars, length))) {
    count(counts, "piece", piece);
  }
}

/** Cuts by UTF-16 code units: letters that need two of them are in no word that many prompts have. */
function piecesOfWord(word: string): string[] {
  const pieces: string[] = [];
  for (let start = 0; start + PIECE_CHARS <= word.length; start += 1) {
    pieces.push(word.slice(start, start + PIECE_CHARS));
  }
  return pieces;
}

function piecesOf(chars: readonly string[], length: number): string[] {
  return Array.from({ length: Math.max(0, chars.length - length + 1) }, (_, start) =>
    chars.slice(start, start + length).join(""),
  );
}

/** Properties of the whole prompt. Their names begin with a star, which no word can have. */
function marksOf(prompt: string, wordCount: number): string[] {
  const lengthClass = LENGTH_CLASSES.find((max) => wordCount <= max) ?? "long";
  return [
    ...(prompt.includes("```") ? ["*fence"] : []),
    ...(/<\/?[a-z]/i.test(prompt) ? ["*tag"] : []),
    ...(/[?\uff1f]/u.test(prompt) ? ["*question"] : []),
    `*length ${lengthClass}`,
  ];
}

function count(counts: Counts, kind: FeatureKind, name: string): void {
  counts[kind].set(name, (counts[kind].get(name) ?? 0) + 1);
}

function weigh(counts: Counts): ReadonlyMap<number, number> {
  const weights = new Map<number, number>();
  for (const kind of ["word", "pair", "piece"] as const) {
    const entries = [...counts[kind]].map(([name, times]) => [name, 1 + Math.log(times)] as const);
    const length = Math.hypot(...entries.map(([, weight]) => weight)) || 1;
    for (const [name, weight] of entries) {
      const feature = hashOf(`${kind} ${name}`);
      weights.set(feature, (weights.get(feature) ?? 0) + (KIND_WEIGHTS[kind] * weight) / length);
    }
  }
  return weights;
}

/**
 * FNV-1a over UTF-16 code units, mixed once more at the end; 32 bits. The file of the model holds these hashes, so the
 * function must never change.
 */
function hashOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < name.length; index += 1) {
    hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 12)) >>> 0;
}
