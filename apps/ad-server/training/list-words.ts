/** Prints every word of the training prompts, one a line, for word_vectors.py. */
import { dictionaryWords, readableText, wordsOfPrompt } from "../src/prompt-model/prompt-text.ts";
import { TRAINING_FOLDER } from "../src/prompt-model/shipped-model.ts";
import { loadTrainingPrompts } from "../src/prompt-model/training-prompts.ts";

const { prompts } = loadTrainingPrompts(TRAINING_FOLDER);
const words = prompts.flatMap(({ prompt }) => dictionaryWords(wordsOfPrompt(readableText(prompt))));
process.stdout.write(`${[...new Set(words)].join("\n")}\n`);
