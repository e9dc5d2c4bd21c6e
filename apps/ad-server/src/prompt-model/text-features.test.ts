import { expect, test } from "vitest";
import { SHIPPED_MODEL } from "../../testdata/shipped-model.ts";
import { featuresOf } from "./text-features.ts";
import { dictionaryWords, foldSpelling, readableText, wordsOfText } from "./text-words.ts";
import { dotProduct } from "./word-vectors.ts";

const { vectors } = SHIPPED_MODEL;
const wordsOf = (text: string) => dictionaryWords(wordsOfText(readableText(text)));
const closeness = (a: string, b: string) =>
  dotProduct(vectors.meaningOf(wordsOf(a)), vectors.meaningOf(wordsOf(b)));

test.each([
  ["ＲＵＮＮＩＮＧ Shoes", "running shoes"],
  ["café crème", "cafe creme"],
  ["Straße", "strasse"],
  ["don\u2019t", "don't"],
  ["zero\u200bwidth", "zerowidth"],
  ["\u0926\u094c\u0921\u093c\u0928\u093e", "\u0926\u094c\u0921\u093c\u0928\u093e".normalize("NFC")],
])("%j is folded to %j", (text, folded) => {
  expect(foldSpelling(text)).toBe(folded.normalize("NFC"));
});

test("no more is read of a text that folding makes longer", () => {
  expect(readableText("\u3316".repeat(1800)).length).toBeLessThanOrEqual(1801);
});

test("of the marks of one letter thirty are folded, also if they are parted by invisible characters", () => {
  const marks = "\u094d\u200b\u093c".repeat(10_000);
  expect([...foldSpelling(`\u0915${marks}`)].length).toBeLessThanOrEqual(31);
});

test.each([
  ["l'hiver d'occasion", ["hiver", "occasion"]],
  ["the dog's bed and the boys' tent", ["the", "dog", "bed", "and", "the", "boys", "tent"]],
  ["テントを買う", ["テント", "を", "買う"]],
  ["", []],
  ["?!", []],
])("the dictionary words of %j are %j", (text, words) => {
  expect(wordsOf(text)).toEqual(words);
});

test.each([
  ["stroller", "Kinderwagen", "mortgage"],
  ["ランニングシューズ", "running shoes", "database"],
  ["colchón", "mattress", "password"],
  ["contraseña", "password", "tent"],
])("%s is closer in meaning to %s than to %s", (word, like, unlike) => {
  expect(closeness(word, like)).toBeGreaterThan(closeness(word, unlike));
});

test("an unlisted compound is read by its parts", () => {
  expect(closeness("Kinderwagenfahrgestell", "Kinderwagen")).toBeGreaterThan(0.3);
});

test("a text without known words has no direction", () => {
  expect(Math.max(...vectors.meaningOf(wordsOf("\ud800 \u0000 12345")))).toBe(0);
});

test("features are the same for the same text and bounded for a long one", () => {
  const long = `which tent? ${"a b c d e f g ".repeat(200_000)}`;
  expect(featuresOf(long, vectors).sparse.size).toBeLessThan(2_000);
  expect([...featuresOf("Which tent?", vectors).sparse]).toEqual([
    ...featuresOf("Which tent?", vectors).sparse,
  ]);
});

const sparseOf = (text: string) => [...featuresOf(text, vectors).sparse.keys()].sort();

test.each([
  ["Running SHOES", "running shoes"],
  ["café au lait", "cafe au lait"],
  ["size 41", "size 42"],
  ["ｔｅｎｔ", "tent"],
])("%j has the same features as %j", (one, other) => {
  expect(sparseOf(one)).toEqual(sparseOf(other));
});

test.each([
  ["a question", "which tent?", "which tent"],
  ["a block of code", "tent ``` a", "tent a"],
  ["a tag", "tent <b a", "tent b a"],
  ["the order of words", "dog food", "food dog"],
  ["a script without blanks", "テント", "寝袋"],
])("%s shows in the features", (_, one, other) => {
  expect(sparseOf(one)).not.toEqual(sparseOf(other));
});

test("the beginning and the end of a long text are read, and not its middle", () => {
  const filling = "of the and to ".repeat(1_000);
  const at = (start: string, middle: string, end: string) =>
    sparseOf(`${start} ${filling}${middle} ${filling}${end}`);
  const plain = at("", "", "");
  expect(at("tent", "", "")).not.toEqual(plain);
  expect(at("", "", "tent")).not.toEqual(plain);
  expect(at("", "tent", "")).toEqual(plain);
});

test("words without end and heaps of accents are read in no time", () => {
  // Each would take minutes if the work grew with the square of the length.
  expect(foldSpelling(`a${"\u0344".repeat(300_000)}`)).toBe("a");
  expect(Math.max(...vectors.meaningOf(["\u00df".repeat(300_000)]))).toBe(0);
});
