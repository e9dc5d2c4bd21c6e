import { expect, test } from "vitest";
import { SIGN_WEIGHTS } from "../../apps/ad-server/src/relevance/fit-probability.ts";
import { SHIPPED_MODEL } from "../../apps/ad-server/testdata/shipped-model.ts";
import { fitWeights } from "../fitting/logistic-regression.ts";
import { loadSignCases } from "./sign-cases.ts";

test("the weights of the signs are fitted to the development prompts", { timeout: 60_000 }, async () => {
  const cases = await loadSignCases(SHIPPED_MODEL);
  expect(cases.filter(({ isTrue }) => isTrue).length).toBeGreaterThan(100);
  expect(fitWeights(cases).map((weight) => Number(weight.toFixed(2)))).toEqual(SIGN_WEIGHTS);
});
