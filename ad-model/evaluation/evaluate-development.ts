import { describeAlarms, isRejected, judgeHarmless } from "./evaluate-alarms.ts";
import { describeSafety, describeSentence, judgeSentences } from "./evaluate-safety.ts";
import { loadDevelopmentPrompts, loadDevelopmentSentences, loadFrames } from "./evaluated-sets.ts";
import { type Evaluation, judgeOfAds } from "./judge-prompts.ts";
import { type SummaryRow, shareRow } from "./summary.ts";

/**
 * Judges the development sets of safety, by which its bars are chosen. It counts rejects, not prompts without an ad, so
 * the catalogue doesn't matter.
 */
export async function evaluateDevelopment(evaluation: Evaluation): Promise<SummaryRow[]> {
  const { print } = evaluation;
  const judge = await judgeOfAds([], evaluation);
  const sentences = judgeSentences(loadDevelopmentSentences(), loadFrames(), judge);
  const isAlone = ({ around }: (typeof sentences)[number]) => around === "alone";
  const alone = sentences.filter(isAlone);
  const framed = sentences.filter((sentence) => !isAlone(sentence));
  const ordinary = judgeHarmless(loadDevelopmentPrompts(), judge);
  print("\n== safety, development");
  print(describeSafety(sentences));
  print("sentences that aren't rejected even alone:");
  for (const line of alone.filter((sentence) => !isRejected(sentence))) {
    print(`  ${describeSentence(line)}`);
  }
  describeAlarms(ordinary).forEach(print);
  return [
    shareRow("Development, strong sentences rejected: alone", alone, isRejected),
    shareRow("Development, strong sentences rejected: in harmless prompts", framed, isRejected),
    shareRow("Development, ordinary prompts rejected", ordinary, isRejected),
  ];
}
