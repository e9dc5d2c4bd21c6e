/** Bulk replays: the workers put many dead letters back on the queue. */
import {
  REPLAY_RATE_DEFAULT,
  REPLAY_RATE_MAX,
  REPLAY_SAMPLE_DEFAULT,
  REPLAY_SAMPLE_MAX,
  REPLAY_STOP_SHARE_DEFAULT,
  type ReplayView,
} from "@adrelay/contract";
import type { ReadBody } from "@adrelay/service-kit";
import type { BulkReplay, ReplayOrder, Store } from "@adrelay/store";
import type { RequestHandler, Response } from "express";
import type { Logger } from "pino";
import { z } from "zod";
import { isoTime } from "../store-answers.ts";
import { actorOf, operatorOf } from "./access.ts";
import { type BulkResource, sendCount, sendStarted } from "./bulk-changes.ts";
import { EMPTY_SPAN, FILTER_FIELDS, filterOf, filterView, isSpan, ONLY_UNKNOWN, readForm } from "./forms.ts";
import type { ChoosePublisher } from "./known-publishers.ts";

export interface BulkReplayDeps {
  readonly replays: Store["replays"];
  readonly log: Logger;
}

const wholeUpTo = (max: number) => z.int().min(1, "must be at least 1").max(max, `must be at most ${max}`);

/** Body of a bulk replay. */
export const replayOrderSchema = z
  .strictObject({
    ...FILTER_FIELDS,
    ...ONLY_UNKNOWN,
    rate_per_second: wholeUpTo(REPLAY_RATE_MAX).default(REPLAY_RATE_DEFAULT),
    stop_at_share: z
      .number()
      .gt(0, "must be more than 0")
      .max(1, "must be at most 1")
      .nullable()
      .default(REPLAY_STOP_SHARE_DEFAULT),
    stop_after: wholeUpTo(REPLAY_SAMPLE_MAX).default(REPLAY_SAMPLE_DEFAULT),
    dry_run: z.boolean().default(false),
  })
  .refine(isSpan, EMPTY_SPAN);

/** Bulk replays for the calls that they share with bulk discards. */
export function describeReplays({ replays, log }: BulkReplayDeps): BulkResource<BulkReplay> {
  return {
    changes: replays,
    listName: "replays",
    idName: "replay_id",
    unknown: "unknown_replay",
    ended: "replay_ended",
    view: replayView,
    logCancelled: (id, by) => log.info({ event: "replay_cancelled", replay_id: id, by }),
  };
}

export interface StartParts {
  readonly choosePublisher: ChoosePublisher;
  readonly readBody: ReadBody;
}

/** POST /admin/v1/replays: starts one, or counts the dead letters that one would cover. */
export function makeStartReplayHandler(
  deps: BulkReplayDeps,
  { choosePublisher, readBody }: StartParts,
): RequestHandler {
  return async (request, response) => {
    const form = await readForm(replayOrderSchema, readBody, { request, response });
    const chosen = form && (await choosePublisher(form.publisher, response));
    if (form === undefined || chosen === undefined) {
      return;
    }
    const filter = filterOf({ ...form, publisher: chosen.publisher });
    const { stop_at_share: share, stop_after: least } = form;
    const stop = share === null ? undefined : { share, least };
    if (form.dry_run) {
      await sendCount(deps.replays, filter, response);
    } else {
      const by = actorOf(response);
      await start(deps, { filter, ratePerSecond: form.rate_per_second, stop, by }, response);
    }
  };
}

async function start(deps: BulkReplayDeps, order: ReplayOrder, response: Response): Promise<void> {
  const replay = await sendStarted(describeReplays(deps), deps.replays.start(order), response);
  if (replay !== undefined) {
    const { publisher, reason } = order.filter;
    const { id: replay_id, matched } = replay;
    deps.log.info({
      event: "replay_started",
      replay_id,
      by: operatorOf(response),
      matched,
      publisher,
      reason,
    });
  }
}

/** A bulk replay as operators see it. Missing values are null. */
function replayView({ id, filter, stop, outcomes, ...replay }: BulkReplay): ReplayView {
  return {
    replay_id: id,
    state: replay.state,
    filter: filterView(filter),
    rate_per_second: replay.ratePerSecond,
    stop_at_share: stop?.share ?? null,
    stop_after: stop?.least ?? null,
    matched: replay.matched,
    replayed: replay.replayed,
    outcomes: { ...outcomes, dead: { ...outcomes.dead } },
    created_at: isoTime(replay.createdAtMs),
    created_by: replay.createdBy,
    updated_at: isoTime(replay.updatedAtMs),
    ended_at: isoTime(replay.endedAtMs),
  };
}
