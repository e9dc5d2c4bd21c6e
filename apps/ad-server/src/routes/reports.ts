import { API_KEY_HEADER, type FieldFault, faultsOf } from "@adrelay/contract";
import { addToRequestLog, sendProblem } from "@adrelay/service-kit";
import { stringify } from "csv-stringify/sync";
import type { Request, RequestHandler, Response } from "express";
import { z } from "zod";
import type { ApiKeys } from "../access.ts";
import {
  COUNTERS,
  GROUPINGS,
  type Grouping,
  makeSpendReport,
  type ReportRow,
  type SpendReport,
} from "../money/spend-report.ts";
import type { Stored } from "../store/redis-store.ts";
import { dayNumberOf, type ReportStore } from "../store/report-store.ts";
import { admitKey, sendStorageUnavailable } from "./endpoint.ts";

/** Who reads a report. A publisher sees its own numbers, the operator sees those of all publishers. */
type ReportReader =
  | { readonly kind: "operator" }
  | { readonly kind: "publisher"; readonly publisher: string };

interface ReportKeys {
  readonly keys: ApiKeys;
  readonly operatorKeys: ApiKeys;
}

/** Whom a key belongs to; undefined if the key is unknown. */
function readerOf({ keys, operatorKeys }: ReportKeys, request: Request): ReportReader | undefined {
  const key = request.get(API_KEY_HEADER);
  if (operatorKeys.publisherOf(key) !== undefined) {
    return { kind: "operator" };
  }
  const publisher = keys.publisherOf(key);
  return publisher === undefined ? undefined : { kind: "publisher", publisher };
}

export interface SpendDeps extends ReportKeys {
  readonly reports: ReportStore;
  now(): number;
}

const counter = z.int().nonnegative();
/** The type of Object.fromEntries doesn't keep the names. */
const counters = Object.fromEntries(COUNTERS.map((name) => [name, counter])) as Record<
  (typeof COUNTERS)[number],
  typeof counter
>;

/** Answer of GET /reports/spend. A row has its key under the name of the grouping. */
export const spendAnswerSchema = z.object({
  from: z.iso.date(),
  to: z.iso.date(),
  group_by: z.enum(GROUPINGS),
  rows: z.array(
    z.object({
      ...counters,
      ad: z.string().nullish(),
      advertiser: z.string().nullish(),
      publisher: z.string().nullish(),
      day: z.iso.date().nullish(),
    }),
  ),
  totals: z.object(counters),
});

/** Answer of GET /reports/budgets, in millionths of the currency. */
export const budgetsAnswerSchema = z.object({
  rows: z.array(
    z.object({
      ad: z.string(),
      advertiser: z.string(),
      budget_micros: z.number(),
      spent_micros: z.number(),
      reserved_micros: z.number(),
      left_micros: z.number(),
    }),
  ),
});

/** The path with `.csv` always answers with CSV, whatever the caller accepts. */
export const SPEND_PATHS = ["/reports/spend", "/reports/spend.csv"];

/**
 * GET /reports/spend: how many ads were requested, shown and acknowledged, and what was spent. A publisher sees its own
 * numbers, the operator those of all publishers.
 */
export function spendEndpoint(deps: SpendDeps): RequestHandler {
  return async (request, response) => {
    addToRequestLog(response, { operation: "report" });
    const reader = readerOf(deps, request);
    if (reader === undefined) {
      // It sends the refusal.
      admitKey(deps.keys, request, response);
      return;
    }
    const parsed = parseReportQuery(request.query, deps.now());
    if (parsed.kind === "faulty") {
      sendProblem(response, "validation_failed", { errors: parsed.faults });
      return;
    }
    const publisher = reader.kind === "publisher" ? reader.publisher : undefined;
    const report = await loadReport(deps.reports, parsed.query, publisher);
    if (report.kind === "unavailable") {
      addToRequestLog(response, { reason: report.reason });
      sendStorageUnavailable(response);
      return;
    }
    sendReport({ request, response, query: parsed.query, report: report.value });
  };
}

async function loadReport(
  reports: ReportStore,
  { from, to, group_by }: ReportQuery,
  publisher: string | undefined,
): Promise<Stored<SpendReport>> {
  const range = { firstDay: dayNumberOf(from), lastDay: dayNumberOf(to) };
  const entries = await reports.loadEntries(range, publisher);
  if (entries.kind === "unavailable" || group_by !== "advertiser") {
    return entries.kind === "ok" ? { kind: "ok", value: makeSpendReport(entries.value, group_by) } : entries;
  }
  const ads = [...new Set(entries.value.flatMap(({ ad }) => (ad === null ? [] : [ad])))];
  const funds = await reports.loadFunds(ads);
  if (funds.kind === "unavailable") {
    return funds;
  }
  const advertisers = new Map(funds.value.map(({ ad, advertiser }) => [ad, advertiser]));
  return { kind: "ok", value: makeSpendReport(entries.value, group_by, advertisers) };
}

interface ReportAnswer {
  readonly request: Request;
  readonly response: Response;
  readonly query: ReportQuery;
  readonly report: SpendReport;
}

function sendReport({ request, response, query, report }: ReportAnswer): void {
  const { from, to, group_by } = query;
  response.vary("Accept");
  if (request.path.replace(/\/$/, "").endsWith(".csv") || request.accepts(["json", "csv"]) === "csv") {
    response
      .type("text/csv; charset=utf-8; header=present")
      .attachment(`spend-by-${group_by}-${from}-${to}.csv`)
      .send(reportAsCsv(report.rows, group_by));
    return;
  }
  const rows = report.rows.map(({ key, ...counters }) => ({ [group_by]: key, ...counters }));
  response.json({ from, to, group_by, rows, totals: report.totals } satisfies z.infer<
    typeof spendAnswerSchema
  >);
}

/**
 * CSV by RFC 4180, without a row of totals, so that the sum of a column is right. A value that a spreadsheet would
 * run as a formula gets an apostrophe, since advertisers' names come from outside.
 */
function reportAsCsv(rows: readonly ReportRow[], groupBy: Grouping): string {
  return stringify(
    rows.map((row) => [row.key ?? "", ...COUNTERS.map((counter) => row[counter])]),
    { header: true, columns: [groupBy, ...COUNTERS], record_delimiter: "windows", escape_formulas: true },
  );
}

/** A quarter of a year. It bounds what one report reads. */
const REPORT_DAYS_MAX = 92;

/** The query of GET /reports/spend. The report includes both days. */
interface ReportQuery {
  readonly from: string;
  readonly to: string;
  readonly group_by: Grouping;
}

type ReportQueryResult =
  | { readonly kind: "ok"; readonly query: ReportQuery }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

// `abort` skips the checks of the range, since only days can be compared.
const dayType = z.iso.date({ error: "must be a day as YYYY-MM-DD", abort: true });

/** The parameters of GET /reports/spend. */
export const REPORT_QUERY_FIELDS = {
  from: dayType.optional(),
  to: dayType.optional(),
  group_by: z.enum(GROUPINGS).default("ad"),
};

/** Parses the query of a report. Without `to` the report ends today, in UTC. Without `from` it covers one day. */
function parseReportQuery(query: unknown, nowMs: number): ReportQueryResult {
  const today = new Date(nowMs).toISOString().slice(0, 10);
  const parsed = z
    .strictObject(REPORT_QUERY_FIELDS)
    .transform(({ from, to = today, group_by }) => ({ from: from ?? to, to, group_by }))
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

export interface BudgetsDeps extends ReportKeys {
  readonly reports: ReportStore;
  /** The current budget of an ad; 0 if the catalogue doesn't have the ad. */
  budgetMicrosOf(adId: string): number;
}

export const BUDGETS_PATH = "/reports/budgets";

/** GET /reports/budgets, for the operator: what each ad has spent, reserved and left since the first start. */
export function budgetsEndpoint({ reports, budgetMicrosOf, ...keys }: BudgetsDeps): RequestHandler {
  return async (request, response) => {
    addToRequestLog(response, { operation: "report" });
    if (readerOf(keys, request)?.kind !== "operator") {
      sendProblem(response, "unauthenticated");
      return;
    }
    const funds = await reports.loadFunds();
    if (funds.kind === "unavailable") {
      addToRequestLog(response, { reason: funds.reason });
      sendStorageUnavailable(response);
      return;
    }
    const rows = funds.value
      .toSorted((one, other) => (one.ad < other.ad ? -1 : 1))
      .map(({ ad, advertiser, spentMicros, reservedMicros }) => ({
        ad,
        advertiser,
        budget_micros: budgetMicrosOf(ad),
        spent_micros: spentMicros,
        reserved_micros: reservedMicros,
        // Not below zero: a budget may have been cut below what is already sold.
        left_micros: Math.max(0, budgetMicrosOf(ad) - spentMicros - reservedMicros),
      }));
    response.json({ rows } satisfies z.infer<typeof budgetsAnswerSchema>);
  };
}
