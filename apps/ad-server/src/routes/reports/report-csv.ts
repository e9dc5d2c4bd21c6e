import { stringify } from "csv-stringify/sync";
import { COUNTERS, type Grouping, type ReportRow } from "../../money/spend-report.ts";

/**
 * RFC 4180. No row of totals, so that a sum over a column is right. What a spreadsheet would take for a formula
 * gets an apostrophe: advertisers' names come from outside.
 */
export function reportAsCsv(rows: readonly ReportRow[], groupBy: Grouping): string {
  return stringify(
    rows.map((row) => [row.key ?? "", ...COUNTERS.map((counter) => row[counter])]),
    { header: true, columns: [groupBy, ...COUNTERS], record_delimiter: "windows", escape_formulas: true },
  );
}
