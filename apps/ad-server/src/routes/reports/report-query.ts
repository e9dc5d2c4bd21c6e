import { type FieldFault, faultsOf } from "@adrelay/contract";
import { z } from "zod";
import { GROUPINGS } from "../../money/spend-report.ts";
import { dayNumberOf } from "../../store/report-store.ts";

/** A quarter of a year: what a report reads is bounded. */
const REPORT_DAYS_MAX = 92;

/** What is asked of GET /reports/spend; both days belong to the report. */
export interface ReportQuery {
  readonly from: string;
  readonly to: string;
  readonly group_by: (typeof GROUPINGS)[number];
}

export type ReportQueryResult =
  | { readonly kind: "ok"; readonly query: ReportQuery }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

// Aborting: what isn't a day can't be compared with one.
const dayType = z.iso.date({ error: "must be a day as YYYY-MM-DD", abort: true });

/** Reads the query of a report. Without `to` it ends today, in UTC; without `from` it is of one day. */
export function parseReportQuery(query: unknown, nowMs: number): ReportQueryResult {
  const today = new Date(nowMs).toISOString().slice(0, 10);
  const parsed = z
    .strictObject({
      from: dayType.optional(),
      to: dayType.default(today),
      group_by: z.enum(GROUPINGS).default("ad"),
    })
    .transform(({ from, to, group_by }) => ({ from: from ?? to, to, group_by }))
    .refine(({ from, to }) => from <= to, { path: ["from"], message: "must not be after to" })
    .refine(({ from, to }) => dayNumberOf(to) - dayNumberOf(from) < REPORT_DAYS_MAX, {
      path: ["to"],
      message: `must be less than ${REPORT_DAYS_MAX} days after from`,
    })
    .safeParse(query);
  return parsed.success
    ? { kind: "ok", query: parsed.data }
    : { kind: "faulty", faults: faultsOf(parsed.error) };
}
