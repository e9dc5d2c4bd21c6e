import type { InjectionRequest } from "@adrelay/contract";
import type { Ad } from "../catalog/ad.ts";
import { holdAuction, type Offer } from "../money/auction.ts";
import { loadShippedModel, type PromptModel } from "../prompt-model/prompt-model.ts";
import { NeedRelevance } from "../relevance/need-relevance.ts";
import { NegativeKeywords } from "../relevance/negative-keywords.ts";
import { NegativeTopics } from "../relevance/negative-topics.ts";
import type { Relevance } from "../relevance/relevance.ts";
import { type DetectLanguage, loadLanguageDetector } from "./prompt-language.ts";
import { PromptSafety } from "./prompt-safety.ts";
import { loadShippedPhrases } from "./sensitive-phrases.ts";
import { audienceOf, isEligible } from "./targeting.ts";
import { type HasUnreadSentence, loadUnreadSentences } from "./unread-sentences.ts";

export type InjectionDecision =
  | { readonly outcome: "rejected"; readonly topic: string }
  | { readonly outcome: "no_fill" }
  | { readonly outcome: "auction"; readonly offers: readonly [Offer, ...Offer[]] };

/** All that a decision depends on besides the request and the time. */
export interface DecisionRules {
  readonly model: Pick<PromptModel, "read">;
  readonly detectLanguage: DetectLanguage;
  readonly hasUnreadSentence: HasUnreadSentence;
  readonly safety: Pick<PromptSafety, "find">;
  readonly relevance: Relevance;
  readonly negativeKeywords: Pick<NegativeKeywords, "read">;
  readonly negativeTopics: Pick<NegativeTopics, "read">;
  readonly floorCpmMicros: number;
}

/** The id of the response and the current time, in milliseconds since 1970. */
interface DecisionMoment {
  readonly id: string;
  readonly nowMs: number;
}

/** The rules that don't depend on the catalogue. */
export type PromptRules = Pick<DecisionRules, "detectLanguage" | "hasUnreadSentence" | "safety"> & {
  readonly model: PromptModel;
};

/** Loads the prompt model, the language tables and the sensitive topics that the ad server is shipped with. */
export async function loadPromptRules(model: PromptModel = loadShippedModel()): Promise<PromptRules> {
  return {
    model,
    detectLanguage: await loadLanguageDetector(),
    hasUnreadSentence: await loadUnreadSentences(model.vectors),
    safety: new PromptSafety(model, loadShippedPhrases()),
  };
}

/** The rules that depend on the catalogue. */
export type AdRules = Pick<DecisionRules, "negativeKeywords" | "negativeTopics"> & {
  readonly relevance: NeedRelevance;
};

/** Builds the rules of a catalogue in many turns of the event loop. `before`: the rules of the one that is replaced. */
export async function rulesOfAds(ads: readonly Ad[], model: PromptModel, before?: AdRules): Promise<AdRules> {
  const negativeKeywords = await NegativeKeywords.build(ads);
  const negativeTopics = await NegativeTopics.build(ads, model);
  // Last, because it may go on reading ads in the background.
  const relevance = await NeedRelevance.build(ads, model, before?.relevance);
  return { relevance, negativeKeywords, negativeTopics };
}

/**
 * Decides what a request gets. Safety comes first, then relevance, then targeting and what advertisers exclude; the ads
 * that remain become offers, in the order of an auction, in which the response's id decides between equal offers. Which offer
 * is served depends on budgets, caps, pacing and what the session was just shown, and the store decides that. A prompt
 * whose language can't be detected, or with a sentence that the model can't read, gets no ad.
 */
export function decideInjection(
  request: InjectionRequest,
  {
    model,
    detectLanguage,
    hasUnreadSentence,
    safety,
    relevance,
    negativeKeywords,
    negativeTopics,
    floorCpmMicros,
  }: DecisionRules,
  { id, nowMs }: DecisionMoment,
): InjectionDecision {
  const { prompt } = request;
  const reading = model.read(prompt);
  const topic = safety.find(prompt, reading);
  if (topic !== undefined) {
    return { outcome: "rejected", topic };
  }
  const language = detectLanguage(prompt);
  if (language === undefined || hasUnreadSentence(prompt)) {
    return { outcome: "no_fill" };
  }
  const audience = audienceOf(request, language);
  const hasNegativeKeyword = negativeKeywords.read({ prompt, language });
  const hasNegativeTopic = negativeTopics.read(reading);
  const candidates = relevance
    .rank(reading)
    .filter(({ ad }) => isEligible(ad, audience, nowMs) && !hasNegativeKeyword(ad) && !hasNegativeTopic(ad))
    .map(({ ad, score }) => ({ ad, relevance: score }));
  const [best, ...others] = holdAuction(candidates, floorCpmMicros, id);
  return best === undefined ? { outcome: "no_fill" } : { outcome: "auction", offers: [best, ...others] };
}
