import { expect, test } from "vitest";
import { SHIPPED_MODEL as model } from "../../testdata/shipped-model.ts";
import { NONE, REJECT_PREFIX } from "./model-weights.ts";
import { PromptModel } from "./prompt-model.ts";

const likeliestNeed = (text: string) => {
  const { needs } = model.read(text);
  return model.needs[needs.indexOf(Math.max(...needs))];
};

test("the shipped model knows hundreds of needs, and the topics of the phrases", () => {
  expect(model.needs.length).toBeGreaterThan(400);
  expect(new Set(model.needs).size).toBe(model.needs.length);
  expect(model.needs.filter((need) => need === NONE || need.startsWith(REJECT_PREFIX))).toEqual([]);
  expect(model.read("").topics.size).toBe(18);
});

test.each(["Which tent should I buy?", "", "テント", "?!", "a".repeat(300_000), "\ud800"])(
  "the probabilities of %.20j add up to 1",
  (text) => {
    const { needs, none, topics } = model.read(text);
    const all = [...needs, none, ...topics.values()];
    expect(all.every((probability) => probability >= 0)).toBe(true);
    expect(all.reduce((sum, probability) => sum + probability, 0)).toBeCloseTo(1, 3);
  },
);

test("the same text gives the same reading", () => {
  expect(model.read("Which tent should I buy?")).toEqual(model.read("Which tent should I buy?"));
});

test.each([
  "Which running shoes should I buy for my first marathon?",
  "Welche Laufschuhe soll ich für meinen ersten Marathon kaufen?",
  "初マラソン用のランニングシューズはどれを買えばいいですか？",
  "running shoes. Stridewell Tempo. A lightweight shoe for marathons. running shoes, marathon",
])("the prompt or the ad %j is read as the same need", (text) => {
  expect(likeliestNeed(text)).toBe("running-shoes");
});

test.each([
  ["Recommend me a laptop", "laptops"],
  ["Suggest a good laptop", "laptops"],
  ["Empfiehl mir einen Laptop", "laptops"],
  ["ノートパソコンのおすすめを教えて", "laptops"],
  ["Recommend me headphones", "headphones"],
])("the plain request %j is read as %s", (text, need) => {
  expect(likeliestNeed(text)).toBe(need);
});

test("a question with nothing to sell is read as no need", () => {
  expect(model.read("What is the derivative of x squared times sine x?").none).toBeGreaterThan(0.5);
});

test("a model of few weights is read as it was fitted", () => {
  const { vectors } = model;
  const weights = {
    classes: ["shoes", "tents", NONE, `${REJECT_PREFIX}grief`],
    fittedTo: "",
    rank: 1,
    features: new Uint32Array(),
    rows: new Int8Array(),
    rowScales: new Float32Array(),
    meaning: new Float32Array(vectors.dimensions),
    outputs: new Float32Array(4),
    bias: Float32Array.from([Math.log(1), Math.log(2), Math.log(3), Math.log(4)]),
  };
  const few = new PromptModel(weights, vectors);
  const { needs, none, topics } = few.read("anything");
  expect(few.needs).toEqual(["shoes", "tents"]);
  expect([...needs, none, topics.get("grief")].map((value) => (value ?? 0).toFixed(3))).toEqual([
    "0.100",
    "0.200",
    "0.300",
    "0.400",
  ]);
});
