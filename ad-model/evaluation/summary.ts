import { describeShare, type Share, shareOf } from "./share.ts";

/** One row of the table of all figures. */
export interface SummaryRow {
  readonly name: string;
  /** Absent if the figure isn't split by language. */
  readonly english?: Share;
  readonly others?: Share;
  readonly all: Share;
}

/** A row whose shares are computed for English, for the other languages and for all of them. */
export function summaryRow<T extends { readonly language: string }>(
  name: string,
  items: readonly T[],
  computeShare: (items: readonly T[]) => Share,
): SummaryRow {
  const chosen = (isWanted: (language: string) => boolean) =>
    computeShare(items.filter(({ language }) => isWanted(language)));
  return {
    name,
    english: chosen((language) => language === "en"),
    others: chosen((language) => language !== "en"),
    all: chosen(() => true),
  };
}

/** A row of how many items have a property. */
export function shareRow<T extends { readonly language: string }>(
  name: string,
  items: readonly T[],
  hasProperty: (item: T) => boolean,
): SummaryRow {
  return summaryRow(name, items, (chosen) => shareOf(chosen, hasProperty));
}

/** The rows as a table in Markdown. */
export function describeSummary(rows: readonly SummaryRow[]): string {
  const cell = (share: Share | undefined) => (share === undefined ? "" : describeShare(share));
  return [
    "| | English | Other languages | All |",
    "|---|---|---|---|",
    ...rows.map(
      ({ name, english, others, all }) => `| ${[name, cell(english), cell(others), cell(all)].join(" | ")} |`,
    ),
  ].join("\n");
}
