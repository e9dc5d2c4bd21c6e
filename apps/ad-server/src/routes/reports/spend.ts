import { addToRequestLog, sendProblem } from "@adrelay/service-kit";
import type { Request, RequestHandler, Response } from "express";
import { makeSpendReport, type SpendReport } from "../../money/spend-report.ts";
import type { Stored } from "../../store/books.ts";
import { dayNumberOf, type ReportStore } from "../../store/report-store.ts";
import { admitKey } from "../admission.ts";
import { sendStorageUnavailable } from "../answers.ts";
import { reportAsCsv } from "./report-csv.ts";
import { parseReportQuery, type ReportQuery } from "./report-query.ts";
import { type ReportKeys, readerOf } from "./report-reader.ts";

export interface SpendDeps extends ReportKeys {
  readonly reports: ReportStore;
  now(): number;
}

/** With `.csv` the answer is CSV whatever the caller accepts. */
export const SPEND_PATHS = ["/reports/spend", "/reports/spend.csv"];

/** GET /reports/spend: what was asked, shown, acknowledged and spent; of the caller, or for the operator of all. */
export function spendEndpoint(deps: SpendDeps): RequestHandler {
  return async (request, response) => {
    addToRequestLog(response, { operation: "report" });
    const reader = readerOf(deps, request);
    if (reader === undefined) {
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
  response.json({ from, to, group_by, rows, totals: report.totals });
}
