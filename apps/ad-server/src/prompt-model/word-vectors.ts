import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { z } from "zod";

/** A word of this rank counts half; a commoner word counts less, because it says little of what a prompt is about. */
const RANK_HALF = 150;
/** An unknown word is read as its longest known beginning and end, if each has at least this many characters. */
const PART_CHARS_MIN = 4;
/** A code is one byte. */
const CENTROIDS = 256;

const headerSchema = z.strictObject({
  /** Of a vector: a whole number of parts. */
  dimensions: z.int().min(1),
  partDimensions: z.int().min(1),
  words: z.int().min(1),
  /** Bytes of the list of words that follows the header's line. */
  wordBytes: z.int().min(1),
});

/**
 * Directions of meaning of words in seven languages. Words of similar meaning lie close together, also across
 * languages. The vectors are product-quantised: each part of a vector is one of 256 typical values (centroids),
 * and a word keeps one byte a part, the number of its centroid.
 *
 * The file is gzipped: a line of JSON (see headerSchema); the words, separated by line breaks, each with a tab and
 * its rank (the lower, the commoner); part by part the 256 centroids, `partDimensions` signed bytes each; word by
 * word the codes, one byte a part. The folder ad-model makes the file.
 */
export class WordVectors {
  readonly dimensions: number;
  readonly #partDimensions: number;
  readonly #rows = new Map<string, number>();
  readonly #weights: Float32Array;
  readonly #centroids: Int8Array;
  readonly #codes: Uint8Array;
  /** No part of an unknown word is longer than the longest word. */
  #longestChars = 0;

  /** Throws on a file of another form, which is a bug. */
  constructor(file: Buffer) {
    const bytes = gunzipSync(file);
    const headerEnd = bytes.indexOf("\n");
    const header = headerSchema.parse(JSON.parse(bytes.toString("utf8", 0, headerEnd)));
    const wordsEnd = headerEnd + 1 + header.wordBytes;
    const lines = bytes.toString("utf8", headerEnd + 1, wordsEnd).split("\n");
    this.dimensions = header.dimensions;
    this.#partDimensions = header.partDimensions;
    this.#weights = new Float32Array(lines.length);
    lines.forEach((line, row) => {
      const [word = "", rank = ""] = line.split("\t");
      this.#rows.set(word, row);
      this.#longestChars = Math.max(this.#longestChars, word.length);
      this.#weights[row] = Number(rank) / (Number(rank) + RANK_HALF);
    });
    this.#centroids = new Int8Array(bytes.buffer, bytes.byteOffset + wordsEnd, CENTROIDS * this.dimensions);
    this.#codes = bytes.subarray(wordsEnd + this.#centroids.length);
  }

  /**
   * The mean direction of words; rare words count more. Its length is 1, or 0 if no word is known.
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

  knows(word: string): boolean {
    return this.#rows.has(word);
  }

  #addTo(sum: Float32Array, row: number, weight: number): void {
    const size = this.#partDimensions;
    const parts = this.dimensions / size;
    for (let part = 0; part < parts; part += 1) {
      const centroid = (part * CENTROIDS + (this.#codes[row * parts + part] ?? 0)) * size;
      for (let at = 0; at < size; at += 1) {
        const dimension = part * size + at;
        sum[dimension] = (sum[dimension] ?? 0) + weight * (this.#centroids[centroid + at] ?? 0);
      }
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

/** The same direction with length 1; a vector of length 0 stays as it is. */
function normalised(vector: Float32Array): Float32Array {
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
