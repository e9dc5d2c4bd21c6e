/** `npm run fit:ads`: fits the ad server's prompt model to its training prompts. Takes about half a minute. */
import { writeFileSync } from "node:fs";
import { fitModel } from "../apps/ad-server/src/prompt-model/fit-model.ts";
import { encodeModel } from "../apps/ad-server/src/prompt-model/model-weights.ts";
import {
  PROMPT_MODEL_FILE,
  TRAINING_FOLDER,
  WORD_VECTORS_FILE,
} from "../apps/ad-server/src/prompt-model/shipped-model.ts";
import { loadTrainingPrompts } from "../apps/ad-server/src/prompt-model/training-prompts.ts";
import { loadWordVectors } from "../apps/ad-server/src/prompt-model/word-vectors.ts";

const USAGE = `npm run fit:ads

Fits the prompt model to apps/ad-server/training/*.tsv and writes apps/ad-server/model/prompt-model.bin.gz.
The same prompts give the same file. Takes about half a minute; npm run eval:ads shows what came of it.
`;

const [word] = process.argv.slice(2);
if (word === "--help") {
  process.stdout.write(USAGE);
  process.exit(0);
}
if (word !== undefined) {
  process.stderr.write(`fit:ads takes no ${word}\n\n${USAGE}`);
  process.exit(2);
}

const { prompts, sha256 } = loadTrainingPrompts(TRAINING_FOLDER);
process.stdout.write(`fitting to ${prompts.length} prompts …\n`);
const weights = fitModel(prompts, { vectors: loadWordVectors(WORD_VECTORS_FILE), fittedTo: sha256 });
writeFileSync(PROMPT_MODEL_FILE, encodeModel(weights));
process.stdout.write(`wrote ${weights.features.length} features of ${weights.classes.length} classes\n`);
