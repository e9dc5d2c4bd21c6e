/** Bulk replays: the workers put many dead letters back on the queue. */
import { REPLAY_RATE_DEFAULT, REPLAY_RATE_MAX, type ReplayView } from "@adrelay/contract";
import { OVERDUE, type ReadBody, readJson, sendProblem } from "@adrelay/service-kit";
import type { BulkReplay, DeadFilter, Store } from "@adrelay/store";
import type { RequestHandler, Response } from "express";
import type { Logger } from "pino";
import { z } from "zod";
import { askStore, isoTime, sendUnavailable } from "../store-answers.ts";
import { EMPTY_SPAN, FILTER_FIELDS, isSpan, parseForm, refuseRepeats } from "./forms.ts";
import { operatorOf } from "./operators.ts";

export interface BulkReplayDeps {
  readonly replays: Store["replays"];
  readonly log: Logger;
}

const LISTED_MAX = 100;

const orderSchema = z
  .strictObject({
    ...FILTER_FIELDS,
    rate_per_second: z
      .int()
      .min(1, "must be at least 1")
      .max(REPLAY_RATE_MAX, `must be at most ${REPLAY_RATE_MAX}`)
      .default(REPLAY_RATE_DEFAULT),
    dry_run: z.boolean().default(false),
  })
  .refine(isSpan, EMPTY_SPAN);

/** POST /admin/v1/replays: starts one, or counts the dead letters that one would cover. */
export function makeStartReplayHandler(deps: BulkReplayDeps, readBody: ReadBody): RequestHandler {
  return async (request, response) => {
    const body = await readJson(readBody, request, response);
    const isClear = body !== undefined && refuseRepeats(body, response);
    const form = isClear ? parseForm(orderSchema, body.value, response) : undefined;
    if (form === undefined) {
      return;
    }
    const { publisher, reason, since, until, rate_per_second: ratePerSecond } = form;
    const filter = { publisher, reason, sinceMs: since, untilMs: until };
    if (form.dry_run) {
      await sendCount(deps.replays, filter, response);
    } else {
      await start(deps, { filter, ratePerSecond, by: operatorOf(response) }, response);
    }
  };
}

async function sendCount(
  replays: BulkReplayDeps["replays"],
  filter: DeadFilter,
  response: Response,
): Promise<void> {
  const matched = await askStore(replays.count(filter));
  if (matched === OVERDUE) {
    sendUnavailable(response);
  } else {
    response.json({ dry_run: true, matched });
  }
}

async function start(
  { replays, log }: BulkReplayDeps,
  order: Parameters<Store["replays"]["start"]>[0],
  response: Response,
): Promise<void> {
  const replay = await askStore(replays.start(order).then((id) => replays.find(id)));
  if (replay === OVERDUE || replay === undefined) {
    sendUnavailable(response);
    return;
  }
  const { publisher, reason } = order.filter;
  const { id: replay_id, matched } = replay;
  log.info({ event: "replay_started", replay_id, by: order.by, matched, publisher, reason });
  response.status(202).json(replayView(replay));
}

/** GET /admin/v1/replays */
export function makeListReplaysHandler({ replays }: BulkReplayDeps): RequestHandler {
  return async (_request, response) => {
    const latest = await askStore(replays.latest(LISTED_MAX));
    if (latest === OVERDUE) {
      sendUnavailable(response);
    } else {
      response.json({ replays: latest.map(replayView) });
    }
  };
}

/** GET /admin/v1/replays/{replay_id} */
export function makeShowReplayHandler({ replays }: BulkReplayDeps): RequestHandler {
  return async (request, response) => {
    await sendReplay(replays, idInPath(request.params), response);
  };
}

/** POST /admin/v1/replays/{replay_id}/cancel */
export function makeCancelReplayHandler({ replays, log }: BulkReplayDeps): RequestHandler {
  return async (request, response) => {
    const id = idInPath(request.params);
    const by = operatorOf(response);
    const cancelled = await askStore(replays.cancel(id, by));
    switch (cancelled) {
      case OVERDUE:
        sendUnavailable(response);
        return;
      case "unknown":
        sendProblem(response, "unknown_replay");
        return;
      case "ended":
        sendProblem(response, "replay_ended");
        return;
      case "cancelled":
        log.info({ event: "replay_cancelled", replay_id: id, by });
        await sendReplay(replays, id, response);
        return;
      default:
        cancelled satisfies never;
    }
  };
}

async function sendReplay(replays: BulkReplayDeps["replays"], id: string, response: Response): Promise<void> {
  const replay = await askStore(replays.find(id));
  if (replay === OVERDUE) {
    sendUnavailable(response);
  } else if (replay === undefined) {
    sendProblem(response, "unknown_replay");
  } else {
    response.json(replayView(replay));
  }
}

/** The replay's id in the path; '' if it isn't a valid id. */
function idInPath(params: Readonly<Record<string, unknown>>): string {
  return z.guid().toLowerCase().safeParse(params["replay_id"]).data ?? "";
}

/** A bulk replay as operators see it. Missing values are null. */
function replayView({ id, filter, ...replay }: BulkReplay): ReplayView {
  return {
    replay_id: id,
    state: replay.state,
    filter: {
      publisher: filter.publisher ?? null,
      reason: filter.reason ?? null,
      since: isoTime(filter.sinceMs),
      until: isoTime(filter.untilMs),
    },
    rate_per_second: replay.ratePerSecond,
    matched: replay.matched,
    replayed: replay.replayed,
    created_at: isoTime(replay.createdAtMs),
    created_by: replay.createdBy,
    updated_at: isoTime(replay.updatedAtMs),
    ended_at: isoTime(replay.endedAtMs),
  };
}
