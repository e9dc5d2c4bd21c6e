import { readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { SENSITIVE_NEEDS } from "../relevance/sensitive-ads.ts";
import { loadShippedPhrases, SensitivePhrases } from "./sensitive-phrases.ts";

const phrases = loadShippedPhrases();
const strongTopicOf = (text: string) => {
  const found = phrases.find(text);
  return found?.isStrong === true ? found.topic : undefined;
};

test.each([
  ["I want to end my life tonight", "self_harm"],
  ["I WANT TO   KILL MYSELF", "self_harm"],
  ["i don\u2019t want to live anymore", "self_harm"],
  ["i want to k\u200bill myself", "self_harm"],
  ["i want to **kill** _myself_", "self_harm"],
  ["ｉ ｗａｎｔ ｔｏ ｋｉｌｌ ｍｙｓｅｌｆ", "self_harm"],
  ["Ich will nicht mehr leben", "self_harm"],
  ["j'ai envie de mourir", "self_harm"],
  ["quiero suicidarme", "self_harm"],
  ["não quero mais viver", "self_harm"],
  ["死にたいです", "self_harm"],
  ["मैं मरना चाहता हूँ", "self_harm"],
  ["she slit her wrist in the bath", "self_harm"],
  ["er wollte sich erhängen", "self_harm"],
  ["je vais me pendre ce soir", "self_harm"],
  ["pienso en ahorcarme", "self_harm"],
  ["ele queria cortar os pulsos", "self_harm"],
  ["उसने फाँसी लगा ली", "self_harm"],
  ["手首を切ってしまった", "self_harm"],
  ["selling glocks here with no background checks", "weapons"],
  ["my toddler drank some antifreeze", "medical_emergency"],
  ["der Kleine hat Spülmittel getrunken", "medical_emergency"],
  ["unsere Katze wird eingeschläfert", "grief"],
])("%j has a strong phrase of the topic %s", (text, topic) => {
  expect(strongTopicOf(text)).toBe(topic);
});

/** Whatever is said plainly stands in a harmless text at times: "I keep cutting myself shaving". */
const HARMLESS_SHARE_MAX = 1 / 5000;

test("strong phrases occur in hardly any harmless training text", { timeout: 60_000 }, () => {
  const folder = new URL("../../../../ad-model/training/prompts/", import.meta.url);
  const lines = readdirSync(folder).flatMap((name) =>
    readFileSync(new URL(name, folder), "utf8").split("\n"),
  );
  const harmless = lines.flatMap((line) => {
    const [, label = "", text = ""] = line.split("\t");
    // Whoever wants a funeral home says why.
    const isSensitive =
      label.startsWith("reject:") || label.split("|").some((need) => SENSITIVE_NEEDS.has(need));
    return text === "" || isSensitive ? [] : [text.replaceAll("\\n", "\n")];
  });
  expect(harmless.length).toBeGreaterThan(10_000);
  const named = harmless.filter((text) => strongTopicOf(text) !== undefined);
  expect(named.length, named.join("\n")).toBeLessThanOrEqual(HARMLESS_SHARE_MAX * harmless.length);
});

test.each([
  ["I have been an alcoholic for years", "addiction"],
  ["wir haben unsere Mutter so früh verloren", "grief"],
  ["on vient de perdre notre fils", "grief"],
  ["perdimos a nuestro bebé", "grief"],
  ["as crianças passam fome", "financial_distress"],
  ["वो चरस बेचता है", "drugs"],
  ["拳銃を手に入れたい", "weapons"],
  ["er will Amok laufen", "terror_or_violence"],
])("%j hints at the topic %s", (text, topic) => {
  expect(phrases.find(text)).toEqual({ topic, isStrong: false });
});

test.each(["a non-alcoholic beer", "non alcoholic punch", "un aspirateur silencieux", "un vaso de cristal"])(
  "%j has no phrase of any topic",
  (text) => {
    expect(phrases.find(text)).toBeUndefined();
  },
);

const few = new SensitivePhrases([
  {
    topic: "grief",
    strong: { words: ["has died"], anywhere: ["死んだ"] },
    hints: { words: ["grave"], anywhere: [] },
  },
  { topic: "abuse", strong: { words: ["hits me"], anywhere: [] }, hints: { words: [], anywhere: [] } },
]);

test.each([
  ["it has died.", { topic: "grief", isStrong: true }],
  ["犬が死んだので", { topic: "grief", isStrong: true }],
  ["a grave matter", { topic: "grief", isStrong: false }],
  ["at the grave he hits me", { topic: "abuse", isStrong: true }],
  ["it hash diedx", undefined],
  ["gravel", undefined],
  ["engraver", undefined],
  ["", undefined],
])("in %j the first topic is %j", (text, named) => {
  expect(few.find(text)).toEqual(named);
});

test("no text makes the search throw", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 2000 }), (text) => {
      expect(() => phrases.find(text)).not.toThrow();
    }),
  );
});

test("no phrase has any number of any words in it, since a search would read a long text for each beginning", () => {
  const file = new URL("../../catalog/sensitive-phrases.yaml", import.meta.url);
  const pieces = readFileSync(file, "utf8").split("\n");
  expect(pieces.filter((piece) => /\\p\{\w+\}[+*][^()]*\)(?:[+*]|\{\d+,\})/.test(piece))).toEqual([]);
});

test("a phrase may have thirty words between its parts", () => {
  const words = "still und leise ".repeat(10);
  expect(strongTopicOf(`Mein Vater ist ${words}gestorben`)).toBe("grief");
});

test("a word of any phrase, repeated without end, is searched in time", { timeout: 60_000 }, () => {
  const file = new URL("../../catalog/sensitive-phrases.yaml", import.meta.url);
  const words = new Set(readFileSync(file, "utf8").match(/[\p{L}\p{M}']{2,}/gu));
  for (const word of words) {
    // A search that goes back without end would take minutes.
    phrases.find(`${word} `.repeat(2_000 / word.length));
  }
});
