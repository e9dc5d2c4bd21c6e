/** The parts of the evaluation that judge prompts with labelled outcomes. */
import { loadFirstAds, loadSecondAds } from "./evaluated-catalogs.ts";
import {
  FIRST_SETS,
  loadOutcomes,
  loadSensitiveAds,
  type OutcomeSet,
  SECOND_SETS,
} from "./evaluated-sets.ts";
import { describeFigures, describeWrong, excerpt, type Figures, figuresOf } from "./evaluation-report.ts";
import { type Evaluation, type JudgePrompt, judgeOfAds } from "./judge-prompts.ts";
import type { Judged, LabelledOutcome } from "./labelled-outcomes.ts";
import type { Share } from "./share.ts";
import { type SummaryRow, shareRow, summaryRow } from "./summary.ts";

/** Judges the sets of the shipped catalogue. */
export async function evaluateFirst(evaluation: Evaluation): Promise<SummaryRow[]> {
  const judge = await judgeOfAds(loadFirstAds(), evaluation);
  return FIRST_SETS.flatMap((set) => {
    const judged = evaluateOutcomes(set.name, { lines: loadOutcomes(set), judge, print: evaluation.print });
    return rowsOf(set, judged, {
      "expected outcome": ({ accuracy }) => accuracy,
      "fills with an expected category": ({ categoryPrecision }) => categoryPrecision,
      "sensitive prompts rejected": ({ rejectRecall }) => rejectRecall,
    });
  });
}

/** Judges the sets of a catalogue whose categories the shipped one lacks. */
export async function evaluateSecond(evaluation: Evaluation): Promise<SummaryRow[]> {
  const { print } = evaluation;
  const judge = await judgeOfAds(loadSecondAds(), evaluation);
  const sensitiveAds = loadSensitiveAds();
  return SECOND_SETS.flatMap((set) => {
    const judged = evaluateOutcomes(set.name, { lines: loadOutcomes(set), judge, print });
    const pairsOf = (line: Judged) => wrongSensitivePairs(line, sensitiveAds);
    for (const line of judged) {
      for (const ad of pairsOf(line)) {
        print(`  ${line.expected.id} is offered the sensitive ad ${ad}: ${excerpt(line.expected.prompt)}`);
      }
    }
    return [
      ...rowsOf(set, judged, {
        "fills with an expected category": ({ categoryPrecision }) => categoryPrecision,
        "wishes that get an ad": ({ fillRate }) => fillRate,
      }),
      shareRow(
        `${capitalised(set.name)}: prompts offered a sensitive ad that they don't want`,
        withLanguage(judged),
        (line) => pairsOf(line).length > 0,
      ),
    ];
  });
}

/** Judges a set, prints its figures and every prompt that was judged wrongly. */
export function evaluateOutcomes(
  title: string,
  {
    lines,
    judge,
    print,
  }: { lines: readonly LabelledOutcome[]; judge: JudgePrompt; print: Evaluation["print"] },
): Judged[] {
  print(`\n== ${title}`);
  const judged = lines.map((expected) => ({ expected, judgment: judge(expected) }));
  const isEnglish = ({ expected }: Judged) => expected.language === "en";
  for (const [group, chosen] of [
    ["English", judged.filter(isEnglish)],
    ["Other languages", judged.filter((line) => !isEnglish(line))],
  ] as const) {
    if (chosen.length > 0) {
      print(describeFigures(group, figuresOf(chosen)));
      describeWrong(chosen).forEach(print);
    }
  }
  return judged;
}

/** The ids of sensitive ads in the auction of a prompt that doesn't want their category. Any of them may be shown. */
export function wrongSensitivePairs(
  { expected, judgment }: Judged,
  sensitiveAds: ReadonlySet<string>,
): string[] {
  return judgment.outcome === "fill"
    ? judgment.ads
        .filter(({ id, category }) => sensitiveAds.has(id) && !expected.categories.includes(category))
        .map(({ id }) => id)
    : [];
}

function rowsOf(
  { name }: OutcomeSet,
  judged: readonly Judged[],
  figures: Readonly<Record<string, (figures: Figures) => Share>>,
): SummaryRow[] {
  return Object.entries(figures).map(([figure, choose]) =>
    summaryRow(`${capitalised(name)}: ${figure}`, withLanguage(judged), (chosen) =>
      choose(figuresOf(chosen)),
    ),
  );
}

function withLanguage(judged: readonly Judged[]) {
  return judged.map((line) => ({ ...line, language: line.expected.language }));
}

function capitalised(name: string): string {
  return `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;
}
