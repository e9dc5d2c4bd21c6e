import { type InjectionRequest, injectionRequestSchema } from "@adrelay/contract";
import type { Ad } from "../../apps/ad-server/src/catalog/ad.ts";
import {
  decideInjection,
  type PromptRules,
  rulesOfAds,
} from "../../apps/ad-server/src/injection/decide-injection.ts";

/** What the ad server decides for a prompt. */
export type Judgment =
  | { readonly outcome: "reject"; readonly topic: string }
  | { readonly outcome: "no_fill" }
  /** All ads of the auction. The first one is shown unless its budget is spent or the session just saw it. */
  | { readonly outcome: "fill"; readonly ads: readonly [Ad, ...Ad[]] };

/** A prompt and what is known of who asks. */
interface AskedPrompt {
  readonly prompt: string;
  readonly country?: string | undefined;
  readonly age?: number | undefined;
  readonly gender?: string | undefined;
}

export type JudgePrompt = (asked: AskedPrompt) => Judgment;

/** What every part of the evaluation needs. */
export interface Evaluation {
  readonly rules: PromptRules;
  /** The flights of ads are judged by this time. */
  readonly nowMs: number;
  readonly print: (line: string) => void;
}

/** Decides between equal offers. It is always the same, so that figures can be repeated. */
const RESPONSE_ID = "3f2b8c1e-9d4a-4c6b-8f10-0a1b2c3d4e5f";

/** Returns a function that judges a prompt as an ad server with these ads does. Any bid is high enough. */
export async function judgeOfAds(
  ads: readonly Ad[],
  { rules, nowMs }: Pick<Evaluation, "rules" | "nowMs">,
): Promise<JudgePrompt> {
  const all = { ...rules, ...(await rulesOfAds(ads, rules.model)), floorCpmMicros: 0 };
  return (asked) => {
    const decision = decideInjection(requestOf(asked), all, { id: RESPONSE_ID, nowMs });
    switch (decision.outcome) {
      case "rejected":
        return { outcome: "reject", topic: decision.topic };
      case "no_fill":
        return { outcome: "no_fill" };
      case "auction": {
        const [best, ...others] = decision.offers;
        return { outcome: "fill", ads: [best.ad, ...others.map(({ ad }) => ad)] };
      }
      default:
        return decision satisfies never;
    }
  };
}

function requestOf({ prompt, country, age, gender }: AskedPrompt): InjectionRequest {
  return injectionRequestSchema.parse({
    prompt,
    request_context: { session_id: "evaluation", user_agent: "evaluation", user_ip: "192.0.2.1" },
    optional_context: { country, age, gender },
  });
}
