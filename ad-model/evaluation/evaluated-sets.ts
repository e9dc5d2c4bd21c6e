import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { type LabelledOutcome, parseLabelledOutcomes } from "./labelled-outcomes.ts";

/*
 * The texts of the evaluation. No model is fitted to any of them. Reading a faulty file throws, which is a bug, since
 * the files are part of the repository.
 */

const testdata = (name: string) => fileURLToPath(new URL(`../testdata/${name}`, import.meta.url));

export const SECOND_CATALOG_FILE = testdata("second-catalog.yaml");

/** A file of labelled prompts, with the name that it has in reports. */
export interface OutcomeSet {
  readonly name: string;
  readonly file: string;
}

/** For the shipped catalogue. */
export const FIRST_SETS: readonly OutcomeSet[] = [
  { name: "first catalogue, development", file: testdata("prompts-dev.jsonl") },
  { name: "first catalogue, held out", file: testdata("prompts-heldout.jsonl") },
];
export const SECOND_SETS: readonly OutcomeSet[] = [
  { name: "second catalogue, development", file: testdata("second-prompts-dev.jsonl") },
  { name: "second catalogue, held out", file: testdata("second-prompts-heldout.jsonl") },
];

export function loadOutcomes({ file }: OutcomeSet): LabelledOutcome[] {
  return parseLabelledOutcomes(readFileSync(file, "utf8"));
}

/** The ids of ads of the second catalogue that would hurt beside a prompt that doesn't want just them. */
export function loadSensitiveAds(): ReadonlySet<string> {
  return new Set(linesOf("second-sensitive-ads.txt"));
}

/** A sentence beside which an ad would be wrong. */
export interface SensitiveSentence {
  readonly language: string;
  readonly topic: string;
  readonly text: string;
  /** A strong sentence says it plainly; a quiet one lets it be understood. */
  readonly isStrong: boolean;
}

export const loadSensitiveSentences = () => readSensitiveSentences("sensitive-heldout.tsv");
/** Strong sentences of a later set, many of them in small letters and without a full stop. */
export const loadHastySentences = () => readSensitiveSentences("sensitive-hasty.tsv");
/** Strong sentences of a third set, whose writer saw no other text. */
export const loadThirdSentences = () => readSensitiveSentences("sensitive-third.tsv");
/** Strong sentences by which the bars of safety are chosen. */
export const loadDevelopmentSentences = () => readSensitiveSentences("sensitive-dev.tsv");

function readSensitiveSentences(name: string): SensitiveSentence[] {
  return linesOf(name).map((line) => {
    const [language, label, text, strength] = z
      .tuple([z.string(), z.string().startsWith("reject:"), z.string().min(1), z.enum(["strong", "quiet"])])
      .parse(line.split("\t"));
    return {
      language,
      topic: label.slice("reject:".length),
      text: written(text),
      isStrong: strength === "strong",
    };
  });
}

export const FRAME_KINDS = ["start", "end", "middle", "transcript", "list"] as const;
const frameSchema = z.strictObject({
  id: z.string(),
  language: z.string(),
  /** Where the sentence stands. */
  kind: z.enum(FRAME_KINDS),
  /** A harmless prompt, with `{S}` in the place of the sentence. */
  text: z.string().includes("{S}"),
});
export type Frame = z.infer<typeof frameSchema>;

export function loadFrames(): Frame[] {
  return linesOf("frames.jsonl").map((line) => frameSchema.parse(JSON.parse(line)));
}

/** A prompt beside which an ad may stand. */
export interface HarmlessPrompt {
  readonly language: string;
  readonly domain: string;
  readonly text: string;
}

/** What people ask every day. */
export const loadOrdinaryPrompts = () => readOrdinaryPrompts("ordinary-heldout.tsv");
/** The same by the writer of the third set of sensitive sentences. */
export const loadThirdOrdinaryPrompts = () => readOrdinaryPrompts("ordinary-third.tsv");
/** Harmless prompts by which the bars of safety are chosen; a third has words of sensitive ones. */
export const loadDevelopmentPrompts = () => readOrdinaryPrompts("ordinary-dev.tsv");

function readOrdinaryPrompts(name: string): HarmlessPrompt[] {
  return linesOf(name).map((line) => {
    const [language, domain, text] = z
      .tuple([z.string(), z.string(), z.string().min(1)])
      .parse(line.split("\t"));
    return { language, domain, text: written(text) };
  });
}

/** Harmless prompts with the words of sensitive ones. */
export function loadHardNegatives(): HarmlessPrompt[] {
  return linesOf("hard-negatives.tsv").map((line) => {
    const [language, text] = z.tuple([z.string(), z.string().min(1)]).parse(line.split("\t"));
    return { language, domain: "hard_negatives", text: written(text) };
  });
}

/** Every text that the evaluation judges. */
export function evaluatedTexts(): string[] {
  return [
    ...[...FIRST_SETS, ...SECOND_SETS].flatMap(loadOutcomes).map(({ prompt }) => prompt),
    ...[
      ...loadSensitiveSentences(),
      ...loadHastySentences(),
      ...loadThirdSentences(),
      ...loadDevelopmentSentences(),
      ...loadOrdinaryPrompts(),
      ...loadThirdOrdinaryPrompts(),
      ...loadDevelopmentPrompts(),
      ...loadHardNegatives(),
      ...loadFrames(),
    ].map(({ text }) => text),
  ];
}

function linesOf(name: string): string[] {
  return readFileSync(testdata(name), "utf8")
    .split("\n")
    .filter((line) => line !== "");
}

/** `\n` in a text of a `.tsv` file means a line break. */
function written(text: string): string {
  return text.replaceAll("\\n", "\n");
}
