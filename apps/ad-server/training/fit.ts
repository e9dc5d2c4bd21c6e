/** Fits the prompt model to the training prompts and writes model/prompt-model.bin.gz. Takes about half a minute. */
import { writeFileSync } from "node:fs";
import { fitModel } from "../src/prompt-model/fit-model.ts";
import { encodeModel } from "../src/prompt-model/model-weights.ts";
import { PROMPT_MODEL_FILE, TRAINING_FOLDER, WORD_VECTORS_FILE } from "../src/prompt-model/shipped-model.ts";
import { loadTrainingPrompts } from "../src/prompt-model/training-prompts.ts";
import { loadWordVectors } from "../src/prompt-model/word-vectors.ts";

const { prompts, sha256 } = loadTrainingPrompts(TRAINING_FOLDER);
const weights = fitModel(prompts, { vectors: loadWordVectors(WORD_VECTORS_FILE), fittedTo: sha256 });
writeFileSync(PROMPT_MODEL_FILE, encodeModel(weights));
process.stdout.write(`fitted ${weights.features.length} features to ${prompts.length} prompts\n`);
