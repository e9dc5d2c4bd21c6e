/** Prints every word of the training prompts, one a line, for word_vectors.py. */
import { loadTrainingPrompts, TRAINING_FOLDER, wordsOfPrompts } from "../fitting/training-prompts.ts";

const { prompts } = loadTrainingPrompts(TRAINING_FOLDER);
process.stdout.write(`${[...wordsOfPrompts(prompts)].join("\n")}\n`);
