import { EVALUATED_OUTCOMES, type EvaluatedOutcome, isRight, type Judged } from "./labelled-outcomes.ts";
import { describeShare, type Share, shareOf } from "./share.ts";

/** Figures of a set of judged prompts. */
export interface Figures {
  readonly prompts: number;
  /** The prompts with the expected outcome, whatever the category. */
  readonly accuracy: Share;
  /** Of the fills, those whose first ad has an expected category. A fill that was not expected is wrong. */
  readonly categoryPrecision: Share;
  /** Of the prompts that want what the catalogue sells, those that get any ad. */
  readonly fillRate: Share;
  /** Of the prompts where a reject is expected, those that were rejected. */
  readonly rejectRecall: Share;
  /** Numbers of prompts by expected and then by actual outcome. */
  readonly confusion: Readonly<Record<EvaluatedOutcome, Readonly<Record<EvaluatedOutcome, number>>>>;
}

export function figuresOf(judged: readonly Judged[]): Figures {
  const expecting = (expect: EvaluatedOutcome) => judged.filter(({ expected }) => expected.expect === expect);
  const endsIn =
    (outcome: EvaluatedOutcome) =>
    ({ judgment }: Judged) =>
      judgment.outcome === outcome;
  const rowOf = (expect: EvaluatedOutcome) => ({
    fill: expecting(expect).filter(endsIn("fill")).length,
    no_fill: expecting(expect).filter(endsIn("no_fill")).length,
    reject: expecting(expect).filter(endsIn("reject")).length,
  });
  return {
    prompts: judged.length,
    accuracy: shareOf(judged, ({ expected, judgment }) => judgment.outcome === expected.expect),
    categoryPrecision: shareOf(judged.filter(endsIn("fill")), isRight),
    fillRate: shareOf(expecting("fill"), endsIn("fill")),
    rejectRecall: shareOf(expecting("reject"), endsIn("reject")),
    confusion: { fill: rowOf("fill"), no_fill: rowOf("no_fill"), reject: rowOf("reject") },
  };
}

/** The figures and the confusion table as text. */
export function describeFigures(title: string, figures: Figures): string {
  const { prompts, accuracy, categoryPrecision, fillRate, rejectRecall, confusion } = figures;
  const row = (cells: readonly (string | number)[]) =>
    cells.map((cell) => String(cell).padStart(10)).join("");
  return [
    `${title}: ${prompts} prompts`,
    `  expected outcome ${describeShare(accuracy)}   expected category ${describeShare(categoryPrecision)} fills`,
    `  filled ${describeShare(fillRate)} wishes   rejected ${describeShare(rejectRecall)} sensitive prompts`,
    `  ${row(["expected", ...EVALUATED_OUTCOMES])}`,
    ...EVALUATED_OUTCOMES.map(
      (expect) => `  ${row([expect, ...EVALUATED_OUTCOMES.map((actual) => confusion[expect][actual])])}`,
    ),
  ].join("\n");
}

/** One line of text for each prompt that was judged wrongly. */
export function describeWrong(judged: readonly Judged[]): string[] {
  return judged
    .filter((line) => !isRight(line))
    .map(({ expected, judgment }) => {
      const wanted = [expected.expect, ...expected.categories].join(" ");
      const { id, language, prompt } = expected;
      return `  ${id} (${language}) expected ${wanted}, got ${describeJudgment(judgment)}: ${excerpt(prompt)}`;
    });
}

/** The outcome, and the topic that forbids an ad or the category and the id of the first ad. */
export function describeJudgment(judgment: Judged["judgment"]): string {
  switch (judgment.outcome) {
    case "reject":
      return `reject ${judgment.topic}`;
    case "no_fill":
      return "no_fill";
    case "fill":
      return `fill ${judgment.ads[0].category} (${judgment.ads[0].id})`;
    default:
      return judgment satisfies never;
  }
}

const EXCERPT_CHARS = 110;

/** The beginning of a text, on one line. */
export function excerpt(text: string): string {
  const line = text.replace(/\s+/gu, " ");
  return line.length <= EXCERPT_CHARS ? line : `${line.slice(0, EXCERPT_CHARS)}…`;
}
