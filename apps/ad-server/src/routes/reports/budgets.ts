import { addToRequestLog, sendProblem } from "@adrelay/service-kit";
import type { RequestHandler } from "express";
import type { ReportStore } from "../../store/report-store.ts";
import { sendStorageUnavailable } from "../answers.ts";
import { type ReportKeys, readerOf } from "./report-reader.ts";

export interface BudgetsDeps extends ReportKeys {
  readonly reports: ReportStore;
  /** The budget of an ad as of now; 0 for one that the catalogue doesn't hold. */
  budgetMicrosOf(adId: string): number;
}

export const BUDGETS_PATH = "/reports/budgets";

/** GET /reports/budgets, for the operator: what each ad has spent, has reserved and has left since the first start. */
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
        // A budget may have been cut below what was sold already.
        left_micros: Math.max(0, budgetMicrosOf(ad) - spentMicros - reservedMicros),
      }));
    response.json({ rows });
  };
}
