import type { InjectionRequest } from "@adrelay/contract";
import { holdAuction, type Offer } from "../money/auction.ts";
import type { PromptModel } from "../prompt-model/prompt-model.ts";
import { loadShippedModel } from "../prompt-model/prompt-model.ts";
import type { NegativeKeywords } from "../relevance/negative-keywords.ts";
import type { Relevance } from "../relevance/relevance.ts";
import { type DetectLanguage, loadLanguageDetector } from "./prompt-language.ts";
import { loadShippedSafety, type PromptSafety } from "./prompt-safety.ts";
import { audienceOf, isEligible } from "./targeting.ts";

export type InjectionDecision =
  | { readonly outcome: "rejected"; readonly topic: string }
  | { readonly outcome: "no_fill" }
  | { readonly outcome: "auction"; readonly offers: readonly [Offer, ...Offer[]] };

/** All that a decision depends on besides the request and the time. */
export interface DecisionRules {
  readonly model: Pick<PromptModel, "read">;
  readonly detectLanguage: DetectLanguage;
  readonly safety: Pick<PromptSafety, "find">;
  readonly relevance: Relevance;
  readonly negativeKeywords: Pick<NegativeKeywords, "read">;
  readonly floorCpmMicros: number;
}

/** The id of the response and the current time, in milliseconds since 1970. */
interface DecisionMoment {
  readonly id: string;
  readonly nowMs: number;
}

/** The rules that don't depend on the catalogue. */
export type PromptRules = Pick<DecisionRules, "detectLanguage" | "safety"> & {
  readonly model: ReturnType<typeof loadShippedModel>;
};

/** Loads the prompt model, the language tables and the sensitive topics that the ad server is shipped with. */
export async function loadPromptRules(): Promise<PromptRules> {
  return {
    model: loadShippedModel(),
    detectLanguage: await loadLanguageDetector(),
    safety: loadShippedSafety(),
  };
}

/**
 * Decides what a request gets. Safety comes first, then relevance, then targeting and negative keywords; the ads that
 * remain become offers, in the order of an auction, in which the response's id decides between equal offers. Which offer
 * is served depends on budgets, caps, pacing and what the session was just shown, and the store decides that. A prompt
 * whose language can't be detected gets no ad.
 */
export async function decideInjection(
  request: InjectionRequest,
  { model, detectLanguage, safety, relevance, negativeKeywords, floorCpmMicros }: DecisionRules,
  { id, nowMs }: DecisionMoment,
): Promise<InjectionDecision> {
  const { prompt } = request;
  const reading = model.read(prompt);
  const topic = safety.find(prompt, reading);
  if (topic !== undefined) {
    return { outcome: "rejected", topic };
  }
  const language = detectLanguage(prompt);
  if (language === undefined) {
    return { outcome: "no_fill" };
  }
  const audience = audienceOf(request, language);
  const isUnwanted = negativeKeywords.read({ prompt, language });
  const candidates = (await relevance.rank({ prompt, language, reading }))
    .filter(({ ad }) => isEligible(ad, audience, nowMs) && !isUnwanted(ad))
    .map(({ ad, score }) => ({ ad, relevance: score }));
  const [best, ...others] = holdAuction(candidates, floorCpmMicros, id);
  return best === undefined ? { outcome: "no_fill" } : { outcome: "auction", offers: [best, ...others] };
}
