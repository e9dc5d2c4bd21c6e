import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { NONE, OTHER_NEED } from "../../apps/ad-server/src/prompt-model/model-weights.ts";
import {
  dictionaryWords,
  readableText,
  wordsOfPrompt,
} from "../../apps/ad-server/src/prompt-model/prompt-text.ts";

export const TRAINING_FOLDER = fileURLToPath(new URL("../training", import.meta.url));

/** A prompt with its label. */
export interface LabelledPrompt {
  /** ISO 639-1. */
  readonly language: string;
  /** Classes of the model. The prompt belongs to each of them in an equal share. */
  readonly classes: readonly string[];
  readonly prompt: string;
}

export interface TrainingPrompts {
  readonly prompts: readonly LabelledPrompt[];
  /** SHA-256 of the files in order of their names, in hexadecimal. */
  readonly sha256: string;
}

/** Reads the labelled prompts of a folder's `.tsv` files. Throws a SyntaxError that names the file and the line. */
export function loadTrainingPrompts(folder: string): TrainingPrompts {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith(".tsv"))
    .sort();
  const texts = names.map((name) => readFileSync(join(folder, name), "utf8"));
  const sha256 = createHash("sha256").update(texts.join("\0")).digest("hex");
  const prompts = texts.flatMap((text, index) => {
    try {
      return parseLabelledPrompts(text);
    } catch (error) {
      throw new SyntaxError(`${names[index]}: ${error instanceof Error ? error.message : "unreadable"}`);
    }
  });
  return { prompts, sha256 };
}

/**
 * Reads lines that hold a language, a label and a prompt, separated by tabs. A label is a class of the model,
 * several categories joined by `|`, or `none:<kind>`. `\n` in a prompt means a line break. Throws a SyntaxError that
 * names a faulty line.
 */
export function parseLabelledPrompts(text: string): LabelledPrompt[] {
  return text.split("\n").flatMap((line, index) => {
    if (line === "") {
      return [];
    }
    const [language, label, prompt, ...rest] = line.split("\t");
    if (!language || !label || !prompt || rest.length > 0) {
      throw new SyntaxError(`line ${index + 1} is not a language, a label and a prompt`);
    }
    return [{ language, classes: classesOf(label), prompt: prompt.replaceAll("\\n", "\n") }];
  });
}

function classesOf(label: string): string[] {
  if (label === "none:other_product") {
    return [OTHER_NEED];
  }
  return label.startsWith("none:") ? [NONE] : label.split("|");
}

/** The different words of prompts, spelt as in the list of the word vectors. */
export function wordsOfPrompts(prompts: readonly LabelledPrompt[]): ReadonlySet<string> {
  return new Set(prompts.flatMap(({ prompt }) => dictionaryWords(wordsOfPrompt(readableText(prompt)))));
}
