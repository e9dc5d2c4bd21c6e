import type { Ledger } from "@adrelay/ledger";
import { OVERDUE, sendProblem } from "@adrelay/service-kit";
import type { RequestHandler } from "express";
import { askLedger, parseIdInPath, sendUnavailable } from "../ledger-answers.ts";
import { entryViewWithAttempts } from "./entry-view.ts";

/** GET /admin/v1/acknowledgments/{ad_response_id} */
export function makeShowHandler(ledger: Ledger): RequestHandler {
  return async (request, response) => {
    const id = parseIdInPath(request, response);
    if (id === undefined) {
      return;
    }
    const entry = await askLedger(ledger.find(id));
    if (entry === OVERDUE) {
      sendUnavailable(response);
    } else if (entry === undefined) {
      sendProblem(response, "unknown_ad_response");
    } else {
      response.json(entryViewWithAttempts(entry));
    }
  };
}
