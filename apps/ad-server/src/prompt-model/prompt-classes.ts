/**
 * What a prompt can be about, as labels of the fitted prompts and classes of the model:
 * - the id of a category: a need that ads of this category serve
 * - `other_need`: a wish to buy or hire something else
 * - `none`: nothing to sell
 * - `reject:<topic>`: an ad would be wrong
 */
export const NONE = "none";
export const OTHER_NEED = "other_need";
export const REJECT_PREFIX = "reject:";

/** A prompt with its label: the classes that it belongs to in equal shares. */
export interface LabelledPrompt {
  /** ISO 639-1. */
  readonly language: string;
  readonly classes: readonly string[];
  readonly prompt: string;
}

/**
 * Reads lines of language, label and prompt with tabs between them. Labels are those of the classes, several
 * categories with `|`, and `none:<kind>`; `\n` in a prompt is a line break. Throws a SyntaxError that names the
 * line of another form.
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
