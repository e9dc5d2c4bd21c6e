import { expect, test } from "vitest";
import { keywordShare, stemmedKeywords, stemsOf } from "./keyword-share.ts";

/** Common words weigh nothing, long ones twice as much as short ones. */
const WEIGHTS = {
  weightOf: (word: string) => (["for", "the", "best"].includes(word) ? 0.1 : word.length > 5 ? 1 : 0.5),
};
const shareOf = (prompt: string, ...keywords: readonly string[]) =>
  keywordShare(stemsOf(prompt), stemmedKeywords(keywords, WEIGHTS));

test("a keyword counts as far as its words are in the prompt, rare words more", () => {
  expect(shareOf("where do I rent a car in Palermo", "rental car")).toBeCloseTo(1 / 3);
  expect(shareOf("which rental car for Palermo", "rental car")).toBe(1);
  expect(shareOf("which rental flat for Palermo", "rental car")).toBeCloseTo(2 / 3);
});

test("the keyword that the prompt has most of decides", () => {
  expect(shareOf("a tent for two", "camping stove", "tent", "sleeping bag")).toBe(1);
});

test.each([
  ["Laufschuhe für breite Füße", "laufschuh"],
  ["two folding BIKES", "folding bike"],
  ["プリンターのインクを探しています", "インク"],
])("%j has the keyword %j in another form", (prompt, keyword) => {
  expect(shareOf(prompt, keyword)).toBe(1);
});

test("words that any prompt may contain find nothing", () => {
  expect(shareOf("the best for me", "the best for")).toBe(0);
  expect(shareOf("", "tent")).toBe(0);
});
