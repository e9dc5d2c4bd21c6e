import { LISTED_STATES } from "@adrelay/contract";
import type { Listing } from "@adrelay/ledger";
import { OVERDUE } from "@adrelay/service-kit";
import type { RequestHandler } from "express";
import { z } from "zod";
import { askLedger, sendUnavailable } from "../ledger-answers.ts";
import { entryView } from "./entry-view.ts";
import {
  EMPTY_SPAN,
  entryCursor,
  entryCursorSchema,
  FILTER_FIELDS,
  isSpan,
  limitSchema,
  parseForm,
} from "./forms.ts";

const querySchema = z
  .strictObject({
    ...FILTER_FIELDS,
    state: z.enum(LISTED_STATES).default("dead"),
    limit: limitSchema,
    cursor: entryCursorSchema.optional(),
  })
  .refine(isSpan, EMPTY_SPAN)
  .refine(({ state, reason }) => reason === undefined || state === "dead", {
    path: ["reason"],
    error: "only dead letters have a reason",
  });

/** GET /admin/v1/acknowledgments: one page of a state, newest first. */
export function makeListHandler(listing: Listing): RequestHandler {
  return async (request, response) => {
    const query = parseForm(querySchema, request.query, response);
    if (query === undefined) {
      return;
    }
    const { state, publisher, reason, since, until, limit, cursor } = query;
    const question = { state, publisher, reason, sinceMs: since, untilMs: until, limit, after: cursor };
    const page = await askLedger(listing.page(question));
    if (page === OVERDUE) {
      sendUnavailable(response);
      return;
    }
    response.json({
      acknowledgments: page.entries.map(entryView),
      next_cursor: page.next === undefined ? null : entryCursor(page.next),
    });
  };
}
