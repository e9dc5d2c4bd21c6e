import type { InjectionRequest } from "@adrelay/contract";
import { holdAuction, type Offer } from "../money/auction.ts";
import type { Relevance } from "../relevance/relevance.ts";
import type { SensitiveTopics } from "../safety/sensitive-topics.ts";
import { guessLanguage } from "../targeting/prompt-language.ts";
import { audienceOf, isEligible } from "../targeting/targeting.ts";

export type InjectionDecision =
  | { readonly outcome: "rejected"; readonly topic: string }
  | { readonly outcome: "no_fill" }
  | { readonly outcome: "auction"; readonly offers: readonly [Offer, ...Offer[]] };

/** What decisions rest on. */
export interface DecisionRules {
  readonly topics: Pick<SensitiveTopics, "find">;
  readonly relevance: Relevance;
  readonly floorCpmMicros: number;
}

/**
 * What a request gets: safety before relevance before targeting, and of the ads that are left offers in the
 * order of an auction. Which of them is served depends on budgets and caps, and they are the store's.
 */
export function decideInjection(
  request: InjectionRequest,
  { topics, relevance, floorCpmMicros }: DecisionRules,
  nowMs: number,
): InjectionDecision {
  const topic = topics.find(request.prompt);
  if (topic !== undefined) {
    return { outcome: "rejected", topic };
  }
  const audience = audienceOf(request, guessLanguage(request.prompt));
  const candidates = relevance
    .rank(request.prompt)
    .filter(({ ad }) => isEligible(ad, audience, nowMs))
    .map(({ ad, score }) => ({ ad, relevance: score }));
  const [best, ...others] = holdAuction(candidates, floorCpmMicros);
  return best === undefined ? { outcome: "no_fill" } : { outcome: "auction", offers: [best, ...others] };
}
