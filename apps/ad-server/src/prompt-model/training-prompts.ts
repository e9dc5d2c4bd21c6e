import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type LabelledPrompt, parseLabelledPrompts } from "./prompt-classes.ts";

export interface TrainingPrompts {
  readonly prompts: readonly LabelledPrompt[];
  /** SHA-256 of the files in order of their names, in hexadecimal. */
  readonly sha256: string;
}

/** Reads the labelled prompts of a folder's `.tsv` files. Throws a SyntaxError that names file and line. */
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
