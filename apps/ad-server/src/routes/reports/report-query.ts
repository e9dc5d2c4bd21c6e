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

/** Reads the query of a report; days that aren't given are today, in UTC. */
export function parseReportQuery(query: unknown, nowMs: number): ReportQueryResult {
  const today = new Date(nowMs).toISOString().slice(0, 10);
  const day = z.iso.date("must be a day as YYYY-MM-DD").default(today);
  const parsed = z
    .strictObject({ from: day, to: day, group_by: z.enum(GROUPINGS).default("ad") })
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
