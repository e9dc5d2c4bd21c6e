/** Prints every word of the training texts, one a line, for word_vectors.py. */
import { loadTrainingTexts, TRAINING_FOLDER, wordsOfTexts } from "../fitting/training-texts.ts";

const { prompts, ads, terms } = loadTrainingTexts(TRAINING_FOLDER);
process.stdout.write(`${[...wordsOfTexts([...prompts, ...ads, ...terms])].join("\n")}\n`);
