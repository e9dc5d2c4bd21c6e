import type { Ad } from "../catalog/ad.ts";
import { loadLanguageDetector } from "../language/prompt-language.ts";
import { loadShippedModel } from "../prompt-model/shipped-model.ts";
import type { Relevance } from "../relevance/relevance.ts";
import { loadShippedSafety } from "../safety/load-topics.ts";
import type { DecisionRules } from "./decide-injection.ts";

/** What decisions rest on whichever ads there are. */
export type PromptRules = Pick<DecisionRules, "detectLanguage" | "safety"> & {
  readonly model: ReturnType<typeof loadShippedModel>;
};

/** Makes the relevance of a set of ads. */
export type MakeRelevance = (ads: readonly Ad[], rules: PromptRules) => Promise<Relevance>;

/** Loads the model, the tables of languages and the topics that come with the ad server. */
export async function loadPromptRules(): Promise<PromptRules> {
  return {
    model: loadShippedModel(),
    detectLanguage: await loadLanguageDetector(),
    safety: loadShippedSafety(),
  };
}
