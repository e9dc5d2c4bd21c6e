import { EVALUATED_OUTCOMES, type EvaluatedOutcome, isRight, type Judged } from "./labelled-outcomes.ts";

/** Figures of a set of judged lines. Shares are from 0 to 1, or NaN if they are shares of nothing. */
export interface Figures {
  readonly lines: number;
  /** The share of lines with the expected outcome, whatever the category. */
  readonly accuracy: number;
  /** The share of fills whose ad has an expected category. A fill that was not expected is wrong. */
  readonly categoryPrecision: number;
  readonly fills: number;
  /** The share of prompts that were rejected, among those where a reject is expected. */
  readonly rejectRecall: number;
  readonly rejects: number;
  /** Numbers of lines by expected and then by actual outcome. */
  readonly confusion: Readonly<Record<EvaluatedOutcome, Readonly<Record<EvaluatedOutcome, number>>>>;
}

export function figuresOf(judged: readonly Judged[]): Figures {
  const fills = judged.filter(({ outcome }) => outcome === "fill");
  const rejects = judged.filter(({ expected }) => expected.expect === "reject");
  const countOf = (expect: EvaluatedOutcome, actual: EvaluatedOutcome) =>
    judged.filter(({ expected, outcome }) => expected.expect === expect && outcome === actual).length;
  const rowOf = (expect: EvaluatedOutcome) => ({
    fill: countOf(expect, "fill"),
    no_fill: countOf(expect, "no_fill"),
    reject: countOf(expect, "reject"),
  });
  return {
    lines: judged.length,
    accuracy: judged.filter(({ expected, outcome }) => outcome === expected.expect).length / judged.length,
    categoryPrecision: fills.filter(isRight).length / fills.length,
    fills: fills.length,
    rejectRecall: rejects.filter(({ outcome }) => outcome === "reject").length / rejects.length,
    rejects: rejects.length,
    confusion: { fill: rowOf("fill"), no_fill: rowOf("no_fill"), reject: rowOf("reject") },
  };
}

/** The figures and the confusion table as text. */
export function describeFigures(title: string, figures: Figures): string {
  const { lines, accuracy, categoryPrecision, fills, rejectRecall, rejects, confusion } = figures;
  const row = (cells: readonly (string | number)[]) =>
    cells.map((cell) => String(cell).padStart(10)).join("");
  return [
    `${title}: ${lines} prompts`,
    `  accuracy ${share(accuracy)}   category precision ${share(categoryPrecision)} of ${fills} fills   reject recall ${share(rejectRecall)} of ${rejects}`,
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
    .map(({ expected, outcome, detail }) => {
      const wanted = [expected.expect, ...expected.categories].join(" ");
      const got = [outcome, detail].filter((part) => part !== "").join(" ");
      return `  ${expected.id} (${expected.language}) expected ${wanted}, got ${got}: ${excerpt(expected.prompt)}`;
    });
}

const EXCERPT_CHARS = 90;

function excerpt(prompt: string): string {
  const line = prompt.replace(/\s+/gu, " ");
  return line.length <= EXCERPT_CHARS ? line : `${line.slice(0, EXCERPT_CHARS)}…`;
}

function share(value: number): string {
  return Number.isNaN(value) ? "-" : value.toFixed(3);
}
