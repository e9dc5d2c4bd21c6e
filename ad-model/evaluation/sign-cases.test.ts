import { expect, test } from "vitest";
import { loadShippedModel } from "../../apps/ad-server/src/prompt-model/prompt-model.ts";
import { SIGN_WEIGHTS } from "../../apps/ad-server/src/relevance/fit-probability.ts";
import { fitWeights } from "../fitting/logistic-regression.ts";
import { loadSignCases } from "./sign-cases.ts";

test("the weights of the signs are fitted to the development prompts", { timeout: 60_000 }, async () => {
  const cases = await loadSignCases(loadShippedModel());
  expect(cases.filter(({ isTrue }) => isTrue).length).toBeGreaterThan(100);
  expect(fitWeights(cases).map((weight) => Number(weight.toFixed(2)))).toEqual(SIGN_WEIGHTS);
});
