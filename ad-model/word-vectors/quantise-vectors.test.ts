import { expect, test } from "vitest";
import { dotProduct, WordVectors } from "../../apps/ad-server/src/prompt-model/word-vectors.ts";
import { decodeWholeVectors, pruneWords, quantiseVectors } from "./quantise-vectors.ts";

const DIMENSIONS = 6;
const OPTIONS = { partDimensions: 2, sampleWords: 1000, rounds: 10 };

/** A file as word_vectors.py writes it. Words whose numbers differ by a multiple of DIMENSIONS mean almost the same. */
function wholeFile(words: number): Buffer {
  const list = Array.from({ length: words }, (_, word) => `word${word}\t1000`).join("\n");
  const components = Int8Array.from({ length: words * DIMENSIONS }, (_, at) => {
    const word = Math.floor(at / DIMENSIONS);
    const jitter = ((at * 7919) % 5) - 2;
    return (at % DIMENSIONS === word % DIMENSIONS ? 100 : 0) + jitter;
  });
  const header = { dimensions: DIMENSIONS, words, wordBytes: list.length };
  return Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n${list}`), Buffer.from(components.buffer)]);
}

const wholeOf = (words: number) => decodeWholeVectors(wholeFile(words));
const cosine = (vectors: WordVectors, a: string, b: string) =>
  dotProduct(vectors.meaningOf([a]), vectors.meaningOf([b]));

test("few words are kept exactly, up to rounding", () => {
  const whole = wholeOf(20);
  const vectors = new WordVectors(quantiseVectors(whole, OPTIONS));
  const components = whole.components.subarray(3 * DIMENSIONS, 4 * DIMENSIONS);
  const length = Math.hypot(...components);
  expect(vectors.dimensions).toBe(DIMENSIONS);
  for (const [dimension, value] of vectors.meaningOf(["word3"]).entries()) {
    expect(value).toBeCloseTo((components[dimension] ?? 0) / length, 5);
  }
});

test("more words than a byte can number stay close to their like and away from others", () => {
  const vectors = new WordVectors(quantiseVectors(wholeOf(3000), OPTIONS));
  expect(cosine(vectors, "word0", `word${DIMENSIONS * 300}`)).toBeGreaterThan(0.99);
  expect(cosine(vectors, "word0", "word1")).toBeLessThan(0.1);
});

test("the same vectors give the same bytes", () => {
  expect(quantiseVectors(wholeOf(500), OPTIONS).equals(quantiseVectors(wholeOf(500), OPTIONS))).toBe(true);
});

test("pruning keeps wanted words and the commonest others, each with its vector", () => {
  const lines = ["the\t1", "rare\t900", "wanted\t950", "tent\t300"];
  const components = Int8Array.from([1, 1, 2, 2, 3, 3, 4, 4]);
  const options = { wanted: new Set(["wanted"]), wordsMax: 3 };
  expect(pruneWords({ dimensions: 2, lines, components }, options)).toEqual({
    dimensions: 2,
    lines: ["the\t1", "wanted\t950", "tent\t300"],
    components: Int8Array.from([1, 1, 3, 3, 4, 4]),
  });
});

test("a file of another form is refused", () => {
  expect(() => decodeWholeVectors(Buffer.from('{"dimensions":7}\n'))).toThrow();
});
