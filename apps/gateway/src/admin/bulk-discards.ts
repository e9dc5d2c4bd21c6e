/** Bulk discards: the workers end many dead letters or queued acknowledgments for good. */
import { DISCARDED_STATES, type DiscardView } from "@adrelay/contract";
import type { BulkDiscard, DiscardOrder, Store } from "@adrelay/store";
import type { RequestHandler, Response } from "express";
import type { Logger } from "pino";
import { z } from "zod";
import { isoTime } from "../store-answers.ts";
import { actorOf, operatorOf } from "./access.ts";
import { type BulkResource, sendCount, sendStarted } from "./bulk-changes.ts";
import type { StartParts } from "./bulk-replays.ts";
import {
  discardReasonSchema,
  EMPTY_SPAN,
  FILTER_FIELDS,
  filterOf,
  filterView,
  isSpan,
  ONLY_UNKNOWN,
  oneOf,
  readForm,
} from "./forms.ts";

export interface BulkDiscardDeps {
  readonly discards: Store["discards"];
  readonly queuedDiscards: Store["queuedDiscards"];
  readonly log: Logger;
}

/** Body of a bulk discard. `reason` is part of the filter, so the reason of the discard is `why`. A dry run needs none. */
export const discardOrderSchema = z
  .strictObject({
    ...FILTER_FIELDS,
    ...ONLY_UNKNOWN,
    of: oneOf("state to discard", DISCARDED_STATES).default("dead"),
    why: discardReasonSchema.optional(),
    dry_run: z.boolean().default(false),
  })
  .refine(isSpan, EMPTY_SPAN)
  .refine(({ of, reason }) => reason === undefined || of === "dead", {
    path: ["reason"],
    error: "only dead letters have a reason",
  })
  .refine(({ of, code }) => code === undefined || of === "dead", {
    path: ["code"],
    error: "only dead letters are found by the provider's code",
  })
  .refine(({ why, dry_run: isDryRun }) => isDryRun || why !== undefined, {
    path: ["why"],
    error: "is missing: say why, for the audit",
  });

/** Bulk discards for the calls that they share with bulk replays. */
export function describeDiscards({
  discards,
  log,
}: Pick<BulkDiscardDeps, "discards" | "log">): BulkResource<BulkDiscard> {
  return {
    changes: discards,
    listName: "discards",
    idName: "discard_id",
    unknown: "unknown_discard",
    ended: "discard_ended",
    view: discardView,
    logCancelled: (id, by) => log.info({ event: "discard_cancelled", discard_id: id, by }),
  };
}

/** POST /admin/v1/discards: starts one, or counts what one would cover. */
export function makeStartDiscardHandler(
  deps: BulkDiscardDeps,
  { choosePublisher, readBody }: StartParts,
): RequestHandler {
  const changesOf = { dead: deps.discards, queued: deps.queuedDiscards } as const;
  return async (request, response) => {
    const form = await readForm(discardOrderSchema, readBody, { request, response });
    const chosen = form && (await choosePublisher(form.publisher, response));
    if (form === undefined || chosen === undefined) {
      return;
    }
    const filter = filterOf({ ...form, publisher: chosen.publisher });
    const changes = changesOf[form.of];
    if (form.dry_run || form.why === undefined) {
      await sendCount(changes, filter, response);
    } else {
      const order = { filter, why: form.why, by: actorOf(response) };
      await tellStarted(deps, { order, started: changes.start(order) }, response);
    }
  };
}

async function tellStarted(
  deps: BulkDiscardDeps,
  { order, started }: { readonly order: DiscardOrder; readonly started: Promise<string> },
  response: Response,
): Promise<void> {
  const discard = await sendStarted(describeDiscards(deps), started, response);
  if (discard !== undefined) {
    const { publisher, reason } = order.filter;
    const { id: discard_id, of, matched } = discard;
    deps.log.info({
      event: "discard_started",
      discard_id,
      by: operatorOf(response),
      of,
      matched,
      publisher,
      reason,
    });
  }
}

/** A bulk discard as operators see it. Missing values are null. */
function discardView({ id, filter, ...discard }: BulkDiscard): DiscardView {
  return {
    discard_id: id,
    of: discard.of,
    // Only bulk replays stop by themselves.
    state: discard.state === "stopped" ? "cancelled" : discard.state,
    filter: filterView(filter),
    matched: discard.matched,
    discarded: discard.discarded,
    created_at: isoTime(discard.createdAtMs),
    created_by: discard.createdBy,
    updated_at: isoTime(discard.updatedAtMs),
    ended_at: isoTime(discard.endedAtMs),
  };
}
