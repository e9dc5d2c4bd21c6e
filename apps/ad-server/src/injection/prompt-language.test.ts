import { expect, test } from "vitest";
import { loadLanguageDetector } from "./prompt-language.ts";

const detectLanguage = await loadLanguageDetector();

test.each([
  ["What is the best way to learn how to speak with people?", "en"],
  ["running shoes for flat feet", "en"],
  ["stroller for twins", "en"],
  ["moisturizer for dry skin", "en"],
  ["beste tent voor twee personen", "nl"],
  ["billige fly til oslo", "no"],
  ["Wie lerne ich am besten eine neue Sprache, und was kostet das?", "de"],
  ["Quelle est la meilleure façon d'apprendre une langue ?", "fr"],
  ["¿Cuál es la mejor manera de aprender un idioma?", "es"],
  ["Qual é a melhor forma de aprender uma língua? Não tenho muito tempo", "pt"],
  ["英語を勉強したいです。", "ja"],
  ["मैं अंग्रेज़ी सीखना चाहता हूँ", "hi"],
  ["Chcę kupić nowe buty do biegania na maraton", "pl"],
  [
    "Warum?\n```js\nfor (const item of items) { console.log(item.name) }\n```\nIch verstehe die Schleife nicht",
    "de",
  ],
  ["42", undefined],
  ["", undefined],
  ["\ud800\u0000", undefined],
])("the language of %j is %s", (prompt, language) => {
  expect(detectLanguage(prompt)).toBe(language);
});

test("the language of a one-megabyte prompt is that of its beginning", () => {
  expect(detectLanguage(`Which tent is best for two people? ${"x".repeat(1_000_000)}`)).toBe("en");
  expect(detectLanguage("<".repeat(1_000_000))).toBe(undefined);
});
