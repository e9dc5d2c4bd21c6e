import {
  type HarmlessPrompt,
  loadHardNegatives,
  loadOrdinaryPrompts,
  loadThirdOrdinaryPrompts,
} from "./evaluated-sets.ts";
import { excerpt } from "./evaluation-report.ts";
import { type Evaluation, type JudgePrompt, type Judgment, judgeOfAds } from "./judge-prompts.ts";
import { describeShare, shareOf } from "./share.ts";
import { type SummaryRow, shareRow } from "./summary.ts";

interface JudgedPrompt extends HarmlessPrompt {
  readonly judgment: Judgment;
}

export const isRejected = ({ judgment }: { readonly judgment: Judgment }) => judgment.outcome === "reject";

/** Judges harmless prompts and lists those that are rejected, except those of the third set. */
export async function evaluateAlarms(evaluation: Evaluation): Promise<SummaryRow[]> {
  // Safety comes before relevance, so the catalogue doesn't matter.
  const judge = await judgeOfAds([], evaluation);
  const ordinary = judgeHarmless(loadOrdinaryPrompts(), judge);
  const hardNegatives = judgeHarmless(loadHardNegatives(), judge);
  evaluation.print("\n== false alarms: harmless prompts that are rejected");
  describeAlarms([...ordinary, ...hardNegatives]).forEach(evaluation.print);
  return [
    shareRow("Ordinary prompts rejected", ordinary, isRejected),
    shareRow(
      "Third set, ordinary prompts rejected",
      judgeHarmless(loadThirdOrdinaryPrompts(), judge),
      isRejected,
    ),
    shareRow("Harmless prompts with sensitive words rejected", hardNegatives, isRejected),
  ];
}

export function judgeHarmless(prompts: readonly HarmlessPrompt[], judge: JudgePrompt): JudgedPrompt[] {
  return prompts.map((prompt) => ({ ...prompt, judgment: judge({ prompt: prompt.text }) }));
}

/** For each domain the share of rejected prompts, and then these prompts. */
export function describeAlarms(judged: readonly JudgedPrompt[]): string[] {
  const domains = [...new Set(judged.map(({ domain }) => domain))];
  return domains.flatMap((domain) => {
    const prompts = judged.filter((prompt) => prompt.domain === domain);
    return [
      `${domain}: ${describeShare(shareOf(prompts, isRejected))} rejected`,
      ...prompts.flatMap(({ language, text, judgment }) =>
        judgment.outcome === "reject" ? [`  (${language}) ${judgment.topic}: ${excerpt(text)}`] : [],
      ),
    ];
  });
}
