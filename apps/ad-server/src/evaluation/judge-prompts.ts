import { injectionRequestSchema } from "@adrelay/contract";
import { type DecisionRules, decideInjection } from "../injection/decide-injection.ts";
import type { LabelledPrompt } from "../prompt-model/prompt-classes.ts";
import { NONE, OTHER_NEED, REJECT_PREFIX } from "../prompt-model/prompt-classes.ts";
import type { Judged, LabelledOutcome } from "./labelled-outcomes.ts";

/** What the ad server makes of a labelled prompt before money: the ad that would win. */
export async function judgePrompt(
  expected: LabelledOutcome,
  rules: DecisionRules,
  nowMs: number,
): Promise<Judged> {
  const { prompt, country, age, gender } = expected;
  const request = injectionRequestSchema.parse({
    prompt,
    request_context: { session_id: "evaluation", user_agent: "evaluation", user_ip: "192.0.2.1" },
    optional_context: { country, age, gender },
  });
  const decision = await decideInjection(request, rules, nowMs);
  switch (decision.outcome) {
    case "rejected":
      return { expected, outcome: "reject", detail: decision.topic };
    case "no_fill":
      return { expected, outcome: "no_fill", detail: "" };
    case "auction":
      return { expected, outcome: "fill", detail: decision.offers[0].ad.category };
    default:
      return decision satisfies never;
  }
}

/** A training prompt as a labelled one, for cross-validation; of somebody who fits every ad's targeting. */
export function expectedOf({ language, classes, prompt }: LabelledPrompt, id: string): LabelledOutcome {
  const isReject = classes.some((name) => name.startsWith(REJECT_PREFIX));
  const isFill = !isReject && !classes.some((name) => name === NONE || name === OTHER_NEED);
  return {
    id,
    prompt,
    language,
    expect: isReject ? "reject" : isFill ? "fill" : "no_fill",
    categories: isFill ? [...classes] : [],
  };
}
