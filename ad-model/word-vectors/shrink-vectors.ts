/** Makes the word vectors that the ad server reads from the whole ones. Takes about a minute. */
import { readFileSync, writeFileSync } from "node:fs";
import { WORD_VECTORS_FILE } from "../../apps/ad-server/src/prompt-model/prompt-model.ts";
import { loadTrainingTexts, TRAINING_FOLDER, wordsOfTexts } from "../fitting/training-texts.ts";
import { decodeWholeVectors, pruneWords, quantiseVectors } from "./quantise-vectors.ts";

/** With more words the file would exceed 5 MB. */
const WORDS_MAX = 92_000;

const [wholeFile, ...rest] = process.argv.slice(2);
if (wholeFile === undefined || rest.length > 0) {
  process.stderr.write("usage: node ad-model/word-vectors/shrink-vectors.ts FILE\n");
  process.exit(2);
}
const whole = decodeWholeVectors(readFileSync(wholeFile));
const { prompts, ads, terms } = loadTrainingTexts(TRAINING_FOLDER);
const wanted = wordsOfTexts([...prompts, ...ads, ...terms]);
writeFileSync(WORD_VECTORS_FILE, quantiseVectors(pruneWords(whole, { wanted, wordsMax: WORDS_MAX })));
