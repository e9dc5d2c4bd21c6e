import { expect, test } from "vitest";
import { guessLanguage } from "./prompt-language.ts";

test.each([
  ["What is the best way to learn how to speak with people?", "en"],
  ["Wie lerne ich am besten eine neue Sprache, und was kostet das?", "de"],
  ["Quelle est la meilleure façon d'apprendre une langue ?", "fr"],
  ["¿Cuál es la mejor manera de aprender un idioma?", "es"],
  ["Qual é a melhor forma de aprender uma língua? Não tenho muito tempo", "pt"],
  ["英語を勉強したいです。", "ja"],
  ["मैं अंग्रेज़ी सीखना चाहता हूँ", "hi"],
  ["42", undefined],
  ["", undefined],
  ["\ud800\u0000", undefined],
])("%j is taken for %s", (prompt, language) => {
  expect(guessLanguage(prompt)).toBe(language);
});
