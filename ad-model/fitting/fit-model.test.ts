import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { decodeModel } from "../../apps/ad-server/src/prompt-model/model-weights.ts";
import { PROMPT_MODEL_FILE, PromptModel } from "../../apps/ad-server/src/prompt-model/prompt-model.ts";
import { SHIPPED_MODEL } from "../../apps/ad-server/testdata/shipped-model.ts";
import { encodeModel, FIT_OPTIONS, fitModel } from "./fit-model.ts";
import { classesOf, loadTrainingTexts, parseTrainingLines, TRAINING_FOLDER } from "./training-texts.ts";

const { vectors } = SHIPPED_MODEL;

const linesOf = (...lines: string[]) => parseTrainingLines(lines.join("\n"), "few.tsv");
const FEW = {
  prompts: linesOf(
    "en\ttents\twhich tent for two people",
    "en\ttents\ta light tent for a long walk",
    "en\tcameras\twhich camera for portraits",
    "en\tcameras\ta small camera for a long trip",
    "en\tnone:trivia\twho painted the ceiling",
    "en\tnone:code\twhy does this loop never end",
    "en\treject:grief\tmy father died on sunday",
    "en\treject:grief\tthe funeral is on friday",
    "en\twish:a piano\twhich piano for a beginner",
  ),
  ads: linesOf("en\ttents\tSilverpeg. A tent for two.", "en\tcameras\tLumenfox. A camera for portraits."),
  terms: linesOf("en\ttents\ttent", "en\tcameras\tcamera", "en\treject:grief\tfuneral"),
  sha256: "few",
};
const fitFew = ({ seed = 0, ...more }: FewOptions = {}) =>
  fitModel(FEW, {
    vectors,
    options: { ...FIT_OPTIONS, draws: 4000, rank: 8, textsMin: 1, seed },
    ...more,
  });
type FewOptions = { seed?: number } & Partial<
  Pick<Parameters<typeof fitModel>[1], "teachers" | "onProgress">
>;

test("the shipped model was fitted to the training texts as they are", () => {
  const { fittedTo, classes } = decodeModel(readFileSync(PROMPT_MODEL_FILE));
  const training = loadTrainingTexts(TRAINING_FOLDER);
  expect({ fittedTo, classes }).toEqual({ fittedTo: training.sha256, classes: classesOf(training) });
});

test("a fitted model reads its own texts after its file was written and read", () => {
  const model = new PromptModel(decodeModel(encodeModel(fitFew())), vectors);
  const tent = model.read("which tent for two people");
  const needOf = (name: string) => tent.needs[model.needs.indexOf(name)] ?? 0;
  expect(model.needs).toEqual(["cameras", "tents", "other"]);
  expect(model.fittedTo).toBe("few");
  expect(needOf("tents")).toBeGreaterThan(0.6);
  expect(model.read("my father died on sunday").topics.get("grief")).toBeGreaterThan(0.6);
  expect(model.read("who painted the ceiling").none).toBeGreaterThan(0.6);
  const all = [...tent.needs, tent.none, ...tent.topics.values()];
  expect(all.reduce((sum, probability) => sum + probability, 0)).toBeCloseTo(1, 5);
});

test("a wish for something that no need covers is read as some need", () => {
  const { needs, none } = new PromptModel(fitFew(), vectors).read("which piano for a beginner");
  expect(needs.reduce((sum, probability) => sum + probability, 0)).toBeGreaterThan(Math.max(0.6, none));
});

test("the same texts give the same file", () => {
  expect(encodeModel(fitFew()).equals(encodeModel(fitFew()))).toBe(true);
});

test("a fit with another seed gives another model, which reads its texts as well", () => {
  const other = fitFew({ seed: 1 });
  expect(encodeModel(other).equals(encodeModel(fitFew()))).toBe(false);
  expect(new PromptModel(other, vectors).read("who painted the ceiling").none).toBeGreaterThan(0.6);
});

test("a fit follows its teachers where they contradict the labels", () => {
  const text = "which tent for two people";
  const cameras = { ...new PromptModel(fitFew(), vectors).read("which camera for portraits") };
  const teacher = { read: () => cameras };
  const shareOf = (model: PromptModel) => model.read(text).needs[model.needs.indexOf("cameras")] ?? 0;
  expect(shareOf(new PromptModel(fitFew(), vectors))).toBeLessThan(0.2);
  expect(shareOf(new PromptModel(fitFew({ teachers: [teacher] }), vectors))).toBeGreaterThan(0.4);
});

test("the file gives back the weights", () => {
  const weights = fitFew();
  expect(decodeModel(encodeModel(weights))).toEqual(weights);
});

test("a fit tells how much of it is done", () => {
  const shares: number[] = [];
  fitFew({ onProgress: (share) => shares.push(share) });
  expect(shares).toEqual([0]);
});

test("features of fewer texts than wanted get no row", () => {
  const options = { ...FIT_OPTIONS, draws: 10, rank: 8 };
  const rowsOf = (textsMin: number) =>
    fitModel(FEW, {
      vectors,
      options: { ...options, textsMin },
    }).features.length;
  expect(rowsOf(2)).toBeLessThan(rowsOf(1));
  expect(rowsOf(100)).toBe(0);
});
