import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { decodeModel } from "../../apps/ad-server/src/prompt-model/model-weights.ts";
import {
  loadShippedModel,
  PromptModel,
  WORD_VECTORS_FILE,
} from "../../apps/ad-server/src/prompt-model/prompt-model.ts";
import { loadWordVectors } from "../../apps/ad-server/src/prompt-model/word-vectors.ts";
import { parseLabelledOutcomes, SHIPPED_SETS } from "../evaluation/labelled-outcomes.ts";
import { encodeModel, FIT_OPTIONS, fitModel } from "./fit-model.ts";
import { loadTrainingPrompts, parseLabelledPrompts, TRAINING_FOLDER } from "./training-prompts.ts";

const vectors = loadWordVectors(WORD_VECTORS_FILE);

const FEW_PROMPTS = parseLabelledPrompts(
  [
    "en\thiking-gear\twhich tent for two people",
    "en\thiking-gear\ta light tent for a long walk",
    "en\tcameras\twhich camera for portraits",
    "en\tcameras\ta small camera for a long trip",
    "en\tnone:trivia\twho painted the ceiling",
    "en\tnone:code\twhy does this loop never end",
    "en\treject:grief\tmy father died on sunday",
    "en\treject:grief\tthe funeral is on friday",
    "en\tnone:other_product\twhich piano for a beginner",
    "",
  ].join("\n"),
);

test("the shipped model was fitted to the training prompts as they are", () => {
  expect(loadShippedModel().fittedTo).toBe(loadTrainingPrompts(TRAINING_FOLDER).sha256);
});

test("no labelled prompt of the evaluation is a training prompt", () => {
  const trained = new Set(
    loadTrainingPrompts(TRAINING_FOLDER).prompts.map(({ prompt }) => prompt.trim().toLowerCase()),
  );
  const leaked = SHIPPED_SETS.flatMap((file) => parseLabelledOutcomes(readFileSync(file, "utf8"))).filter(
    ({ prompt }) => trained.has(prompt.trim().toLowerCase()),
  );
  expect(leaked).toEqual([]);
});

test("a fitted model finds the classes of its own prompts, after its file was written and read", () => {
  const weights = fitModel(FEW_PROMPTS, {
    vectors,
    fittedTo: "few",
    options: { ...FIT_OPTIONS, promptsMin: 1 },
  });
  const model = new PromptModel(decodeModel(encodeModel(weights)), vectors);
  const reading = model.read("which tent for two people");
  expect(reading.needs.get("hiking-gear")).toBeGreaterThan(0.5);
  expect(model.read("my father died on sunday").topics.get("grief")).toBeGreaterThan(0.5);
  expect(model.read("which piano for a beginner").otherNeed).toBeGreaterThan(0.5);
  const all = [...reading.needs.values(), ...reading.topics.values(), reading.none, reading.otherNeed];
  expect(all.reduce((sum, probability) => sum + probability, 0)).toBeCloseTo(1, 5);
  expect(model.categories).toEqual(["cameras", "hiking-gear"]);
});

test("the same prompts give the same model", () => {
  const encodeFitted = () => encodeModel(fitModel(FEW_PROMPTS, { vectors, fittedTo: "few" }));
  expect(encodeFitted().equals(encodeFitted())).toBe(true);
});

test.each(["en\thiking-gear", "en\thiking-gear\ta\tb", "\thiking-gear\ta", "en\t\ta"])(
  "the line %j is no labelled prompt",
  (line) => {
    expect(() => parseLabelledPrompts(`en\tcameras\tok\n${line}`)).toThrow("line 2");
  },
);
