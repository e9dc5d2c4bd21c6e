import { type Figure, holds, ratioOf } from "./figure.ts";
import { median } from "./spread.ts";

const HEAD = ["part", "what", "Adrelay", "against", "", "ratio", "promised", ""] as const;

/** A line for each figure: medians of the rounds, and the median of their ratios. */
export function tableRows(figures: readonly Figure[]): readonly (readonly string[])[] {
  return figures.map((figure) => {
    const { part, what, unit, ours, against } = figure;
    const ratio = ratioOf(figure);
    return [
      part,
      what,
      withUnit(median(ours), unit),
      against === undefined ? "" : withUnit(median(against.values), unit),
      against?.name ?? "",
      ratio === undefined || Number.isNaN(ratio) ? "" : ratio.toFixed(2),
      describePromise(figure),
      verdictOf(figure),
    ];
  });
}

/** The table for a terminal. */
export function formatTable(figures: readonly Figure[]): string {
  const rows = [HEAD, ...tableRows(figures)];
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** The table for a Markdown file. */
export function formatMarkdown(figures: readonly Figure[]): string {
  const rows = [HEAD, HEAD.map(() => "---"), ...tableRows(figures)];
  return rows.map((row) => `| ${row.join(" | ")} |`).join("\n");
}

/** How many of the promises that were measured hold. */
export function formatVerdict(figures: readonly Figure[]): string {
  const verdicts = figures.map(holds).filter((verdict) => verdict !== undefined);
  return `${verdicts.filter(Boolean).length} of ${verdicts.length} promises hold`;
}

function withUnit(value: number, unit: string): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${value.toFixed(digits)}${unit === "" || unit.startsWith("/") ? unit : ` ${unit}`}`;
}

function describePromise({ promise }: Figure): string {
  if (promise === undefined) {
    return "";
  }
  const sign = promise.bound.kind === "at_least" ? "≥" : "≤";
  return `${promise.of} ${sign} ${promise.bound.value}`;
}

function verdictOf(figure: Figure): string {
  const verdict = holds(figure);
  return verdict === undefined ? "" : verdict ? "holds" : "FAILS";
}
