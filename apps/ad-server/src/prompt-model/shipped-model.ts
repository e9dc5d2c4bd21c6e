import { fileURLToPath } from "node:url";
import { loadPromptModel, type PromptModel } from "./prompt-model.ts";
import { loadWordVectors } from "./word-vectors.ts";

const pathOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** The files that come with the ad server. */
export const WORD_VECTORS_FILE = pathOf("model/word-vectors.bin");
export const PROMPT_MODEL_FILE = pathOf("model/prompt-model.bin.gz");
export const TRAINING_FOLDER = pathOf("training");

/** The model that comes with the ad server. */
export function loadShippedModel(): PromptModel {
  return loadPromptModel(PROMPT_MODEL_FILE, loadWordVectors(WORD_VECTORS_FILE));
}
