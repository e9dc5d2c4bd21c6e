import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import {
  classesOf,
  labelledTexts,
  loadTrainingTexts,
  parseTrainingLines,
  type TrainingTexts,
  wordsOfTexts,
} from "./training-texts.ts";

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) {
    rmSync(folder, { recursive: true });
  }
});

const ADS =
  "en\ttents\tSilverpeg. A tent.\nen\tfuneral-homes\tStillgrove. Funerals.\nen\tcameras\tLumenfox. A camera.\n";
const TERMS = "en\ttents\ttent\nen\treject:grief\tfuneral\n";

function folderOf(prompts: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "adrelay-training-"));
  folders.push(folder);
  const files = { ...prompts, "ads/a.tsv": ADS, "terms/t.tsv": TERMS };
  for (const kind of ["prompts", "ads", "terms"]) {
    mkdirSync(join(folder, kind));
  }
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

const trainingOf = (...prompts: string[]): TrainingTexts =>
  loadTrainingTexts(folderOf({ "prompts/p.tsv": prompts.map((line) => `${line}\n`).join("") }));
/** The classes that the label of the one prompt allows. */
const allowedBy = (label: string) => {
  const [first] = labelledTexts(trainingOf(`en\t${label}\tsome text`));
  return first?.classes;
};

test("files of the three folders are read, and other files are not", () => {
  const folder = folderOf({
    "prompts/b.tsv": "en\ttents\ttwo\n",
    "prompts/a.tsv": "en\ttents\tone\n",
    "prompts/x.md": "x",
  });
  const { prompts, ads, terms } = loadTrainingTexts(folder);
  expect(prompts.map(({ text }) => text)).toEqual(["one", "two"]);
  expect([ads.length, terms.length]).toEqual([3, 2]);
});

test("the hash changes with any text", () => {
  expect(trainingOf("en\ttents\ta").sha256).not.toBe(trainingOf("en\ttents\tb").sha256);
  expect(trainingOf("en\ttents\ta").sha256).toBe(trainingOf("en\ttents\ta").sha256);
});

test("a line may have line breaks, and empty lines are skipped", () => {
  expect(parseTrainingLines("en\ttents\ta\\nb\n\n", "p.tsv")).toEqual([
    { language: "en", label: "tents", text: "a\nb" },
  ]);
});

test.each(["en\ttents", "en\ttents\ta\tb", "\ttents\ta", "en\t\ta"])(
  "the line %j is no training text",
  (line) => {
    expect(() => parseTrainingLines(`en\ttents\tok\n${line}`, "p.tsv")).toThrow("p.tsv: line 2");
  },
);

test("classes are the needs of ads, none, and the topics, in order", () => {
  expect(classesOf(trainingOf("en\treject:abuse\ta", "en\tnone:code\tb", "en\twish:x\tc"))).toEqual([
    "cameras",
    "funeral-homes",
    "tents",
    "other",
    "none",
    "reject:abuse",
    "reject:grief",
  ]);
});

const NEEDS = ["cameras", "funeral-homes", "tents", "other"];
test.each([
  ["tents", ["tents"]],
  ["other", ["other"]],
  ["tents|cameras", ["tents", "cameras"]],
  ["tents|unknown", ["tents"]],
  ["unknown", NEEDS],
  ["wish:a piano", NEEDS],
  ["none:other_product", NEEDS],
  ["none:trivia", ["none"]],
  ["none:sounds_sensitive", [...NEEDS, "none"]],
  ["none:chat", [...NEEDS, "none"]],
  ["reject:grief", ["reject:grief"]],
])("the label %s allows %j", (label, classes) => {
  expect(allowedBy(label)).toEqual(classes);
});

const TWO_SENTENCES = "My old one leaks. Which tent is dry?";
const sentencesLabelled = (label: string) =>
  labelledTexts(trainingOf(`en\t${label}\t${TWO_SENTENCES}`)).filter(
    ({ text }) => text === "My old one leaks.",
  );

test("each sentence of a harmless prompt is harmless too", () => {
  expect(sentencesLabelled("tents").map(({ classes }) => classes)).toEqual([[...NEEDS, "none"]]);
});

test.each(["reject:grief", "funeral-homes", "tents|funeral-homes"])(
  "sentences of a prompt with the label %s are not taken as harmless",
  (label) => {
    expect(sentencesLabelled(label)).toEqual([]);
  },
);

test("common labels weigh more in all, but each of their texts weighs less", () => {
  const texts = labelledTexts(
    trainingOf("en\treject:abuse\ta", "en\treject:abuse\tb", "en\treject:abuse\tc", "en\treject:war\td"),
  );
  const weightOf = (wanted: string) => texts.find(({ text }) => text === wanted)?.weight ?? 0;
  expect(weightOf("a")).toBe(weightOf("b"));
  expect(weightOf("a")).toBeLessThan(weightOf("d"));
  expect(3 * weightOf("a")).toBeGreaterThan(weightOf("d"));
});

test("words are those of all texts, each once", () => {
  const lines = parseTrainingLines("en\ttents\tTwo tents\nen\ttents\ttwo poles", "p.tsv");
  expect(wordsOfTexts(lines)).toEqual(new Set(["two", "tents", "poles"]));
});
