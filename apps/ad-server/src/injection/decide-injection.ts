import type { InjectionRequest } from "@adrelay/contract";
import type { Ad } from "../catalog/ad.ts";
import type { Relevance } from "../relevance/relevance.ts";
import type { SensitiveTopics } from "../safety/sensitive-topics.ts";
import { guessLanguage } from "../targeting/prompt-language.ts";
import { audienceOf, isEligible } from "../targeting/targeting.ts";

export type InjectionDecision =
  | { readonly outcome: "rejected"; readonly topic: string }
  | { readonly outcome: "no_fill" }
  | { readonly outcome: "ok"; readonly ad: Ad };

/** What decisions rest on. */
export interface DecisionRules {
  readonly topics: Pick<SensitiveTopics, "find">;
  readonly relevance: Relevance;
}

/**
 * What a request gets: safety before relevance before targeting, and of the ads that are left the most
 * relevant one. Money plays no part.
 */
export function decideInjection(
  request: InjectionRequest,
  { topics, relevance }: DecisionRules,
  nowMs: number,
): InjectionDecision {
  const topic = topics.find(request.prompt);
  if (topic !== undefined) {
    return { outcome: "rejected", topic };
  }
  const audience = audienceOf(request, guessLanguage(request.prompt));
  const best = relevance.rank(request.prompt).find(({ ad }) => isEligible(ad, audience, nowMs));
  return best === undefined ? { outcome: "no_fill" } : { outcome: "ok", ad: best.ad };
}
