/** `npm run fit:ads`: fits the ad server's prompt model to its training prompts. Takes about half a minute. */
import { writeFileSync } from "node:fs";
import { PROMPT_MODEL_FILE, WORD_VECTORS_FILE } from "../apps/ad-server/src/prompt-model/prompt-model.ts";
import { loadWordVectors } from "../apps/ad-server/src/prompt-model/word-vectors.ts";
import { encodeModel, fitModel } from "./fitting/fit-model.ts";
import { loadTrainingPrompts, TRAINING_FOLDER } from "./fitting/training-prompts.ts";

const USAGE = `npm run fit:ads

Fits the prompt model to ad-model/training/*.tsv and writes apps/ad-server/model/prompt-model.bin.gz.
The same prompts give the same file. Takes about half a minute. Run npm run eval:ads afterwards to see the effect.
`;

const [word] = process.argv.slice(2);
if (word === "--help") {
  process.stdout.write(USAGE);
  process.exit(0);
}
if (word !== undefined) {
  process.stderr.write(`fit:ads accepts no ${word}\n\n${USAGE}`);
  process.exit(2);
}

const { prompts, sha256 } = loadTrainingPrompts(TRAINING_FOLDER);
process.stdout.write(`fitting to ${prompts.length} prompts …\n`);
const weights = fitModel(prompts, { vectors: loadWordVectors(WORD_VECTORS_FILE), fittedTo: sha256 });
writeFileSync(PROMPT_MODEL_FILE, encodeModel(weights));
process.stdout.write(`wrote ${weights.features.length} features of ${weights.classes.length} classes\n`);
