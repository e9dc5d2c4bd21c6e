/** `npm run fit:ads`: fits the ad server's prompt model to its training texts. Takes about forty minutes on two cores. */
import { writeFileSync } from "node:fs";
import { PROMPT_MODEL_FILE } from "../apps/ad-server/src/prompt-model/prompt-model.ts";
import { encodeModel } from "./fitting/fit-model.ts";
import { fitWithTeachers } from "./fitting/fit-with-teachers.ts";
import { loadTrainingTexts, TRAINING_FOLDER } from "./fitting/training-texts.ts";

const USAGE = `npm run fit:ads

Fits the prompt model to the prompts, ads and terms in ad-model/training and writes
apps/ad-server/model/prompt-model.bin.gz. The same texts give the same file. Takes about forty minutes on two cores.
Run npm run eval:ads afterwards to see the effect.
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

const print = (line: string) => process.stdout.write(`${line}\n`);
const training = loadTrainingTexts(TRAINING_FOLDER);
const { prompts, ads, terms } = training;
print(`reading ${prompts.length} prompts, ${ads.length} ads and ${terms.length} terms …`);
const weights = await fitWithTeachers(training, (share) => print(`fitting … ${Math.floor(100 * share)} %`));
const file = encodeModel(weights);
writeFileSync(PROMPT_MODEL_FILE, file);
print(`wrote ${weights.features.length} features of ${weights.classes.length} classes, ${file.length} bytes`);
