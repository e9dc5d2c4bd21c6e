import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { NONE, OTHER_NEED, REJECT_PREFIX } from "../../apps/ad-server/src/prompt-model/model-weights.ts";
import { sentencesOf, turnsOf } from "../../apps/ad-server/src/prompt-model/prompt-parts.ts";
import {
  dictionaryWords,
  readableText,
  wordsOfText,
} from "../../apps/ad-server/src/prompt-model/text-words.ts";
import { SENSITIVE_NEEDS } from "../../apps/ad-server/src/relevance/sensitive-ads.ts";
import { plainRequestOf } from "./plain-requests.ts";

export const TRAINING_FOLDER = fileURLToPath(new URL("../training", import.meta.url));

/** A text with its label, as the fit reads it. */
export interface LabelledText {
  /** The classes of the model that are right. If there are several, the label leaves open which. */
  readonly classes: readonly string[];
  readonly text: string;
  /** How often the text is drawn, in proportion to others. */
  readonly weight: number;
}

/** A line of a file of training texts. */
export interface TrainingLine {
  /** ISO 639-1. */
  readonly language: string;
  readonly label: string;
  readonly text: string;
}

export interface TrainingTexts {
  /** Prompts and sentences with their labels. */
  readonly prompts: readonly TrainingLine[];
  /** Texts of ads, with the need that each serves as its label. */
  readonly ads: readonly TrainingLine[];
  /** Terms of customers for needs, and terms of sensitive topics. */
  readonly terms: readonly TrainingLine[];
  /** SHA-256 of the files in order of their names, in hexadecimal. */
  readonly sha256: string;
}

const KINDS = ["prompts", "ads", "terms"] as const;

/**
 * Reads the `.tsv` files of the folders `prompts`, `ads` and `terms`. Throws a SyntaxError that names the file and
 * the line of a fault.
 */
export function loadTrainingTexts(folder: string): TrainingTexts {
  const files = KINDS.flatMap((kind) =>
    readdirSync(join(folder, kind))
      .filter((name) => name.endsWith(".tsv"))
      .sort()
      .map((name) => ({
        kind,
        name: `${kind}/${name}`,
        text: readFileSync(join(folder, kind, name), "utf8"),
      })),
  );
  const linesOf = (wanted: (typeof KINDS)[number]) =>
    files.filter(({ kind }) => kind === wanted).flatMap(({ name, text }) => parseTrainingLines(text, name));
  const sha256 = createHash("sha256")
    .update(files.map(({ text }) => text).join("\0"))
    .digest("hex");
  return { prompts: linesOf("prompts"), ads: linesOf("ads"), terms: linesOf("terms"), sha256 };
}

/**
 * Reads lines that hold a language, a label and a text, separated by tabs. `\n` in a text means a line break. Throws a
 * SyntaxError that names a faulty line.
 */
export function parseTrainingLines(text: string, name: string): TrainingLine[] {
  return text.split("\n").flatMap((line, index) => {
    if (line === "") {
      return [];
    }
    const [language, label, written, ...rest] = line.split("\t");
    if (!language || !label || !written || rest.length > 0) {
      throw new SyntaxError(`${name}: line ${index + 1} is not a language, a label and a text`);
    }
    return [{ language, label, text: written.replaceAll("\\n", "\n") }];
  });
}

/** The classes of a model that is fitted to these texts: needs, no need, and topics. */
export function classesOf({ prompts, ads, terms }: TrainingTexts): string[] {
  const labels = new Set([...ads, ...terms, ...prompts].map(({ label }) => label));
  const needs = new Set(ads.map(({ label }) => label));
  const topics = [...labels].filter((label) => label.startsWith(REJECT_PREFIX));
  return [...[...needs].sort(), OTHER_NEED, NONE, ...topics.sort()];
}

/**
 * How much each kind of label weighs in the fit. The needs have most of it, because there are hundreds of them.
 * The shares were chosen on the development sets.
 */
const SHARES = { need: 0.35, other: 0.05, wish: 0.04, none: 0.17, harmless: 0.25, topic: 0.14 } as const;
type Kind = keyof typeof SHARES;
/** Of two labels of one kind, one with a hundred times the texts weighs this power of it more. */
const COMMON_LABEL_POWER = 0.4;
/** Terms weigh less than sentences: people write sentences. */
const TERM_WEIGHT = 0.3;
const AD_WEIGHT = 0.5;
const SENTENCE_WEIGHT = 0.5;

/** What the fit draws from: all texts, and the sentences of harmless prompts, with their classes and weights. */
export function labelledTexts(training: TrainingTexts): LabelledText[] {
  const allowed = allowedClasses(classesOf(training));
  const weighed = [
    ...training.prompts.map((line) => ({ ...line, share: 1 })),
    ...training.prompts.flatMap(sentencesOfHarmless).map((line) => ({ ...line, share: SENTENCE_WEIGHT })),
    ...training.ads.map((line) => ({ ...line, share: AD_WEIGHT })),
    ...training.terms.map((line) => ({ ...line, share: TERM_WEIGHT })),
    ...requestsOf(training.terms).map((line) => ({ ...line, share: TERM_WEIGHT })),
  ];
  const ofLabel = sums(weighed, ({ label }) => label);
  const balanced = weighed.map((line) => ({
    ...line,
    share: line.share * (ofLabel.get(line.label) ?? 1) ** (COMMON_LABEL_POWER - 1),
  }));
  const ofKind = sums(balanced, ({ label }) => kindOf(label));
  return balanced.map(({ label, text, share }) => ({
    classes: allowed(label),
    text,
    weight: (SHARES[kindOf(label)] * share) / (ofKind.get(kindOf(label)) ?? 1),
  }));
}

function sums<T extends { readonly share: number }>(lines: readonly T[], keyOf: (line: T) => string) {
  const found = new Map<string, number>();
  for (const line of lines) {
    found.set(keyOf(line), (found.get(keyOf(line)) ?? 0) + line.share);
  }
  return found;
}

/** A sentence of a harmless prompt is harmless, but may say nothing of what the prompt wants. */
const HARMLESS = "none:part";

/** Whoever wants a funeral home or debt advice may say in one sentence why. */
function maySaySensitive(label: string): boolean {
  return label.split("|").some((name) => SENSITIVE_NEEDS.has(name));
}

function sentencesOfHarmless({ language, label, text }: TrainingLine): TrainingLine[] {
  const isLeftOut = kindOf(label) === "topic" || maySaySensitive(label);
  const sentences = isLeftOut ? [] : turnsOf(text).flatMap((turn) => sentencesOf(turn.text));
  return sentences.length < 2
    ? []
    : sentences.map((sentence) => ({ language, label: HARMLESS, text: sentence }));
}

/** Plain requests for what the terms of needs name. */
function requestsOf(terms: readonly TrainingLine[]): TrainingLine[] {
  return terms.flatMap((line, index) => {
    const request = kindOf(line.label) === "need" ? plainRequestOf(line, index) : undefined;
    return request === undefined ? [] : [{ ...line, text: request }];
  });
}

function kindOf(label: string): Kind {
  if (label.startsWith(REJECT_PREFIX)) {
    return "topic";
  }
  if (label === OTHER_NEED) {
    return "other";
  }
  if (label.startsWith("wish:") || label === "none:other_product") {
    return "wish";
  }
  if (label === HARMLESS || label === "none:sounds_sensitive" || label === "none:chat") {
    return "harmless";
  }
  return label.startsWith("none:") ? "none" : "need";
}

/** Returns a function that gives the classes which a label allows. */
function allowedClasses(classes: readonly string[]): (label: string) => readonly string[] {
  const needs = classes.filter((name) => name !== NONE && !name.startsWith(REJECT_PREFIX));
  const harmless = [...needs, NONE];
  const other = [OTHER_NEED];
  const none = [NONE];
  return (label) => {
    switch (kindOf(label)) {
      case "topic":
        return [label];
      case "other":
        return other;
      case "wish":
        return needs;
      case "harmless":
        return harmless;
      case "none":
        return none;
      case "need": {
        const named = label.split("|").filter((name) => classes.includes(name));
        return named.length > 0 ? named : needs;
      }
    }
  };
}

/** The different words of texts, spelt as in the list of the word vectors. */
export function wordsOfTexts(lines: readonly TrainingLine[]): ReadonlySet<string> {
  return new Set(lines.flatMap(({ text }) => dictionaryWords(wordsOfText(readableText(text)))));
}
