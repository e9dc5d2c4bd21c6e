/**
 * `node ad-model/fit-signs.ts`: fits the weights of the signs by which an ad fits a prompt to the development prompts, and
 * prints them for SIGN_WEIGHTS in apps/ad-server/src/relevance/fit-probability.ts. Takes some seconds.
 */
import { loadShippedModel } from "../apps/ad-server/src/prompt-model/prompt-model.ts";
import { loadSignCases } from "./evaluation/sign-cases.ts";
import { fitWeights } from "./fitting/logistic-regression.ts";

const cases = await loadSignCases(loadShippedModel());
const weights = fitWeights(cases);
process.stdout.write(`${cases.length} cases: [${weights.map((weight) => weight.toFixed(2)).join(", ")}]\n`);
