import { readFileSync } from "node:fs";
import { z } from "zod";

/** Commoner words than this (occurrences per million are its inverse) say little of what a prompt is about. */
const RANK_HALF = 150;
/** An unknown word is read as its longest known beginning and end: compounds, inflections. */
const PART_CHARS_MIN = 4;

const headerSchema = z.strictObject({
  dimensions: z.int().min(1),
  words: z.int().min(1),
  /** Bytes of the list of words that follows the header's line. */
  wordBytes: z.int().min(1),
});

/**
 * Directions of meaning of words in seven languages, so that words of like meaning lie close, also across
 * languages. The file: a line of JSON (see headerSchema), the words separated by line breaks and each with its
 * rank behind a tab (the commoner, the lower), then `dimensions` signed bytes a word.
 */
export class WordVectors {
  readonly dimensions: number;
  readonly #rows = new Map<string, number>();
  readonly #weights: Float32Array;
  readonly #components: Int8Array;
  /** Length of the longest word: no part of an unknown one is longer. */
  #longestChars = 0;

  /** Throws on a file of another form, which is a bug. */
  constructor(bytes: Buffer) {
    const headerEnd = bytes.indexOf("\n");
    const header = headerSchema.parse(JSON.parse(bytes.toString("utf8", 0, headerEnd)));
    const wordsEnd = headerEnd + 1 + header.wordBytes;
    const lines = bytes.toString("utf8", headerEnd + 1, wordsEnd).split("\n");
    this.dimensions = header.dimensions;
    this.#weights = new Float32Array(lines.length);
    lines.forEach((line, row) => {
      const [word = "", rank = ""] = line.split("\t");
      this.#rows.set(word, row);
      this.#longestChars = Math.max(this.#longestChars, word.length);
      this.#weights[row] = Number(rank) / (Number(rank) + RANK_HALF);
    });
    this.#components = new Int8Array(
      bytes.buffer,
      bytes.byteOffset + wordsEnd,
      header.words * header.dimensions,
    );
  }

  /**
   * The mean direction of words, rare ones counting more; length 1, or 0 if none is known.
   *
   * @param words as `dictionaryWords` gives them
   */
  meaningOf(words: readonly string[]): Float32Array {
    const times = new Map<number, number>();
    for (const row of words.flatMap((word) => this.#rowsOf(word))) {
      times.set(row, (times.get(row) ?? 0) + 1);
    }
    const sum = new Float32Array(this.dimensions);
    for (const [row, count] of times) {
      this.#addTo(sum, row, (this.#weights[row] ?? 0) * (1 + Math.log(count)));
    }
    return normalised(sum);
  }

  #addTo(sum: Float32Array, row: number, weight: number): void {
    const components = this.#components;
    const start = row * this.dimensions;
    for (let dimension = 0; dimension < sum.length; dimension += 1) {
      sum[dimension] = (sum[dimension] ?? 0) + weight * (components[start + dimension] ?? 0);
    }
  }

  /** The rows of a word, or of its known parts. */
  #rowsOf(word: string): number[] {
    const row = this.#rows.get(word);
    if (row !== undefined) {
      return [row];
    }
    return /\d/.test(word) ? [] : [this.#longestPart(word, "start"), this.#longestPart(word, "end")].flat();
  }

  #longestPart(word: string, at: "start" | "end"): number[] {
    for (let length = Math.min(word.length - 1, this.#longestChars); length >= PART_CHARS_MIN; length -= 1) {
      const part = at === "start" ? word.slice(0, length) : word.slice(-length);
      const row = this.#rows.get(part);
      if (row !== undefined) {
        return [row];
      }
    }
    return [];
  }
}

/** Reads the vectors of a file. */
export function loadWordVectors(file: string): WordVectors {
  return new WordVectors(readFileSync(file));
}

/** The same direction with length 1; no direction stays none. */
export function normalised(vector: Float32Array): Float32Array {
  const length = Math.sqrt(dotProduct(vector, vector));
  return length === 0 ? vector : vector.map((value) => value / length);
}

/** For directions of length 1: the cosine of their angle. */
export function dotProduct(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let dimension = 0; dimension < a.length; dimension += 1) {
    sum += (a[dimension] ?? 0) * (b[dimension] ?? 0);
  }
  return sum;
}
