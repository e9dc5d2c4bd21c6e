import { expect, test } from "vitest";
import { FRAME_KINDS, type Frame, loadFrames, loadSensitiveSentences } from "./evaluated-sets.ts";
import { fillFrame, framedSentences } from "./framed-sentences.ts";

const frames = loadFrames();
const sentences = loadSensitiveSentences();
const framed = framedSentences(sentences, frames);

test("a sentence stands alone, in all frames of its language and in two others", () => {
  const first = framed.filter(({ sentence }) => sentence === sentences[0]);
  expect(first.map(({ around }) => around)).toEqual([
    "alone",
    ...FRAME_KINDS.flatMap((kind) => [kind, kind]),
    "other language",
    "other language",
  ]);
  expect(framed).toHaveLength(13 * sentences.length);
  expect(first[0]?.prompt).toBe(sentences[0]?.text);
});

test("sentences meet frames of all other languages, never their own as a foreign one", () => {
  const languageOf = new Map(frames.map(({ id, language }) => [id, language]));
  const foreign = framed.filter(({ around }) => around === "other language");
  expect(foreign.filter(({ sentence, frame }) => languageOf.get(frame) === sentence.language)).toEqual([]);
  const english = foreign.filter(({ sentence }) => sentence.language === "en");
  expect(new Set(english.map(({ frame }) => frame)).size).toBe(60);
});

test("the same sentences and frames give the same prompts", () => {
  expect(framedSentences(sentences, frames)).toEqual(framed);
});

test("a text in a frame keeps its dollar signs", () => {
  expect(fillFrame({ text: "a {S} b" }, "$& $1")).toBe("a $& $1 b");
});

test("a frame of JSON stays JSON around quotes and line breaks", () => {
  const jsonFrames = frames.filter(({ text }: Frame) => /^[[{]["{]/.test(text));
  expect(jsonFrames.length).toBeGreaterThan(0);
  for (const frame of jsonFrames) {
    expect(JSON.stringify(JSON.parse(fillFrame(frame, 'she said "no"\n')))).toContain('she said \\"no\\"\\n');
  }
});
