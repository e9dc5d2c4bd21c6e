import type { PromptModel } from "../../apps/ad-server/src/prompt-model/prompt-model.ts";
import { termsOf } from "../../apps/ad-server/src/relevance/fit-probability.ts";
import { NeedRelevance } from "../../apps/ad-server/src/relevance/need-relevance.ts";
import { loadFirstAds, loadSecondAds } from "./evaluated-catalogs.ts";
import { FIRST_SETS, loadOutcomes, SECOND_SETS } from "./evaluated-sets.ts";

/** Of each prompt and catalogue, only the likeliest ads are cases: the others never compete. */
const CASES_MAX = 4;

/**
 * The development prompts with the ads that may fit them, of both catalogues. An ad of an expected category fits; no ad of
 * the catalogue that the prompt wasn't written for does. Sensitive prompts are left out, since safety comes first.
 */
export async function loadSignCases(model: PromptModel) {
  const catalogs = [
    { sets: FIRST_SETS, relevance: await NeedRelevance.build(loadFirstAds(), model) },
    { sets: SECOND_SETS, relevance: await NeedRelevance.build(loadSecondAds(), model) },
  ];
  return catalogs.flatMap(({ sets, relevance: own }) =>
    sets
      .slice(0, 1)
      .flatMap(loadOutcomes)
      .filter(({ expect }) => expect !== "reject")
      .flatMap(({ prompt, categories }) => {
        const reading = model.read(prompt);
        return catalogs.flatMap(({ relevance }) =>
          relevance
            .judge(reading)
            .toSorted((one, other) => other.signs.served - one.signs.served)
            .slice(0, CASES_MAX)
            .map(({ ad, signs }) => ({
              terms: termsOf(signs),
              isTrue: relevance === own && categories.includes(ad.category),
            })),
        );
      }),
  );
}
