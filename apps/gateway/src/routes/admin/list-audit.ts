import type { AuditView } from "@adrelay/contract";
import type { Audit, AuditEntry } from "@adrelay/ledger";
import { OVERDUE } from "@adrelay/service-kit";
import type { RequestHandler } from "express";
import { z } from "zod";
import { isoTime } from "../iso-time.ts";
import { askLedger, sendUnavailable } from "../ledger-answers.ts";
import { auditCursor, auditCursorSchema, limitSchema, parseForm } from "./forms.ts";

const querySchema = z.strictObject({ limit: limitSchema, cursor: auditCursorSchema.optional() });

/** GET /admin/v1/audit: who did what, newest first. */
export function makeAuditHandler(audit: Audit): RequestHandler {
  return async (request, response) => {
    const query = parseForm(querySchema, request.query, response);
    if (query === undefined) {
      return;
    }
    const page = await askLedger(audit.page(query.limit, query.cursor));
    if (page === OVERDUE) {
      sendUnavailable(response);
      return;
    }
    response.json({
      entries: page.entries.map(auditView),
      next_cursor: page.next === undefined ? null : auditCursor(page.next),
    });
  };
}

function auditView({ atMs, by, action, adResponseId, replayId, details }: AuditEntry): AuditView {
  return {
    at: isoTime(atMs),
    by,
    action,
    ad_response_id: adResponseId ?? null,
    replay_id: replayId ?? null,
    details,
  };
}
