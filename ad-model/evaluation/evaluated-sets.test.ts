import { expect, test } from "vitest";
import { loadTrainingTexts, TRAINING_FOLDER } from "../fitting/training-texts.ts";
import { loadSecondAds } from "./evaluated-catalogs.ts";
import {
  evaluatedTexts,
  FIRST_SETS,
  loadDevelopmentPrompts,
  loadDevelopmentSentences,
  loadFrames,
  loadHardNegatives,
  loadHastySentences,
  loadOrdinaryPrompts,
  loadOutcomes,
  loadSensitiveAds,
  loadSensitiveSentences,
  loadThirdOrdinaryPrompts,
  loadThirdSentences,
  SECOND_SETS,
} from "./evaluated-sets.ts";

test("all texts of the evaluation are read", () => {
  expect([...FIRST_SETS, ...SECOND_SETS].map((set) => loadOutcomes(set).length)).toEqual([80, 300, 799, 200]);
  expect(loadSensitiveSentences()).toHaveLength(420);
  expect(loadHastySentences()).toHaveLength(213);
  expect(loadThirdSentences()).toHaveLength(308);
  expect(loadDevelopmentSentences()).toHaveLength(1065);
  expect(loadOrdinaryPrompts()).toHaveLength(600);
  expect(loadThirdOrdinaryPrompts()).toHaveLength(350);
  expect(loadDevelopmentPrompts()).toHaveLength(1199);
  expect(loadHardNegatives()).toHaveLength(150);
  expect(loadFrames()).toHaveLength(70);
});

test("expected categories and sensitive ads are those of the second catalogue", () => {
  const ads = loadSecondAds();
  const categories = new Set(ads.map(({ category }) => category));
  const ids = new Set(ads.map(({ id }) => id));
  const expected = SECOND_SETS.flatMap(loadOutcomes).flatMap((line) => line.categories);
  expect(expected.filter((category) => !categories.has(category))).toEqual([]);
  expect([...loadSensitiveAds()].filter((id) => !ids.has(id))).toEqual([]);
});

test("no text of the evaluation is a training text", () => {
  const plain = (text: string) =>
    text
      .toLowerCase()
      .replace(/[^\p{L}\p{M}\p{N}]+/gu, " ")
      .trim();
  const { prompts, ads, terms } = loadTrainingTexts(TRAINING_FOLDER);
  const trained = new Set([...prompts, ...ads, ...terms].map(({ text }) => plain(text)));
  expect(evaluatedTexts().filter((text) => trained.has(plain(text)))).toEqual([]);
});
