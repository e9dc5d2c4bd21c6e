import type { InjectionRequest } from "@adrelay/contract";
import type { DetectLanguage } from "../language/prompt-language.ts";
import { holdAuction, type Offer } from "../money/auction.ts";
import type { PromptModel } from "../prompt-model/prompt-model.ts";
import type { Relevance } from "../relevance/relevance.ts";
import type { PromptSafety } from "../safety/prompt-safety.ts";
import { audienceOf, isEligible } from "../targeting/targeting.ts";

export type InjectionDecision =
  | { readonly outcome: "rejected"; readonly topic: string }
  | { readonly outcome: "no_fill" }
  | { readonly outcome: "auction"; readonly offers: readonly [Offer, ...Offer[]] };

/** What decisions rest on. */
export interface DecisionRules {
  readonly model: Pick<PromptModel, "read">;
  readonly detectLanguage: DetectLanguage;
  readonly safety: Pick<PromptSafety, "find">;
  readonly relevance: Relevance;
  readonly floorCpmMicros: number;
}

/**
 * What a request gets: safety before relevance before targeting, and of the ads that are left offers in the
 * order of an auction. Which of them is served depends on budgets and caps, and they are the store's. A prompt
 * in a language that can't be told gets no ad.
 */
export async function decideInjection(
  request: InjectionRequest,
  { model, detectLanguage, safety, relevance, floorCpmMicros }: DecisionRules,
  nowMs: number,
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
  const candidates = (await relevance.rank({ prompt, language, reading }))
    .filter(({ ad }) => isEligible(ad, audience, nowMs))
    .map(({ ad, score }) => ({ ad, relevance: score }));
  const [best, ...others] = holdAuction(candidates, floorCpmMicros);
  return best === undefined ? { outcome: "no_fill" } : { outcome: "auction", offers: [best, ...others] };
}
