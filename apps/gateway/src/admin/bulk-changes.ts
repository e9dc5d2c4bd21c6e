/** What the calls on bulk replays and on bulk discards have in common. */
import type { ErrorCode } from "@adrelay/contract";
import { OVERDUE, sendProblem } from "@adrelay/service-kit";
import type { DeadFilter, Store } from "@adrelay/store";
import type { RequestHandler, Response } from "express";
import { z } from "zod";
import { askStore, isoTime, sendUnavailable } from "../store-answers.ts";
import { actorOf, maySee, operatorOf } from "./access.ts";

/** What is common to bulk replays and bulk discards. */
interface BulkChange {
  readonly filter: DeadFilter;
}

/** Bulk replays or bulk discards, and how they are shown. */
export interface BulkResource<Change extends BulkChange> {
  readonly changes: {
    find(id: string): Promise<Change | undefined>;
    latest(limit: number, isListed: (change: Change) => boolean): Promise<Change[]>;
    cancel: Store["replays"]["cancel"];
  };
  /** Name of the list in an answer, and of the id in a path. */
  readonly listName: string;
  readonly idName: string;
  readonly unknown: ErrorCode;
  readonly ended: ErrorCode;
  view(change: Change): object;
  logCancelled(id: string, by: string): void;
}

const LISTED_MAX = 100;

/** GET of all: the latest that the operator may see, newest first. One of some publishers sees those that cover one of them alone. */
export function makeListBulkHandler<Change extends BulkChange>(
  resource: BulkResource<Change>,
): RequestHandler {
  return async (_request, response) => {
    const isSeen = ({ filter }: Change) => maySee(response, filter.publisher);
    const latest = await askStore(resource.changes.latest(LISTED_MAX, isSeen));
    if (latest === OVERDUE) {
      sendUnavailable(response);
    } else {
      response.json({ [resource.listName]: latest.map((change) => resource.view(change)) });
    }
  };
}

/** GET of one. */
export function makeShowBulkHandler<Change extends BulkChange>(
  resource: BulkResource<Change>,
): RequestHandler {
  return async (request, response) => {
    await sendChange(resource, idInPath(request.params, resource), response);
  };
}

/** POST …/cancel */
export function makeCancelBulkHandler<Change extends BulkChange>(
  resource: BulkResource<Change>,
): RequestHandler {
  return async (request, response) => {
    const id = idInPath(request.params, resource);
    const cancelled = await askStore(cancel(resource, id, response));
    switch (cancelled) {
      case OVERDUE:
        sendUnavailable(response);
        return;
      case "unknown":
        sendProblem(response, resource.unknown);
        return;
      case "ended":
        sendProblem(response, resource.ended);
        return;
      case "cancelled":
        resource.logCancelled(id, operatorOf(response));
        await sendChange(resource, id, response);
        return;
      default:
        cancelled satisfies never;
    }
  };
}

/** Cancels one that the operator may see. */
async function cancel<Change extends BulkChange>(
  { changes }: BulkResource<Change>,
  id: string,
  response: Response,
): ReturnType<BulkResource<Change>["changes"]["cancel"]> {
  const change = await changes.find(id);
  const isSeen = change !== undefined && maySee(response, change.filter.publisher);
  return isSeen ? await changes.cancel(id, actorOf(response)) : "unknown";
}

/** Answers how many a filter covers. */
export async function sendCount(
  changes: Pick<Store["replays"], "count">,
  filter: DeadFilter,
  response: Response,
): Promise<void> {
  const counted = await askStore(changes.count(filter));
  if (counted === OVERDUE) {
    sendUnavailable(response);
    return;
  }
  const untilMs = Math.min(counted.beforeMs, filter.untilMs ?? Number.POSITIVE_INFINITY);
  const { matched, isComplete: complete } = counted;
  response.json({ dry_run: true, matched, complete, until: isoTime(untilMs) });
}

/** Answers with one that was started. Undefined if it isn't known that it was. */
export async function sendStarted<Change extends BulkChange>(
  { changes, view }: BulkResource<Change>,
  started: Promise<string>,
  response: Response,
): Promise<Change | undefined> {
  const change = await askStore(started.then((id) => changes.find(id)));
  if (change === OVERDUE || change === undefined) {
    sendUnavailable(response);
    return undefined;
  }
  response.status(202).json(view(change));
  return change;
}

async function sendChange<Change extends BulkChange>(
  { changes, view, unknown }: BulkResource<Change>,
  id: string,
  response: Response,
): Promise<void> {
  const change = await askStore(changes.find(id));
  if (change === OVERDUE) {
    sendUnavailable(response);
  } else if (change === undefined || !maySee(response, change.filter.publisher)) {
    sendProblem(response, unknown);
  } else {
    response.json(view(change));
  }
}

/** The id in the path; '' if it isn't a valid id. */
function idInPath<Change extends BulkChange>(
  params: Readonly<Record<string, unknown>>,
  { idName }: BulkResource<Change>,
): string {
  return z.guid().toLowerCase().safeParse(params[idName]).data ?? "";
}
