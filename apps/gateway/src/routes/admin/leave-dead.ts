/** What an operator does to one dead letter: back on the queue, or ended for good. */
import { type AdResponseId, DISCARD_REASON_CHARS_MAX } from "@adrelay/contract";
import type { DeadLetters, LeaveDeadResult, Ledger, PayloadWork } from "@adrelay/ledger";
import type { DeliveryQueue } from "@adrelay/queue";
import { OVERDUE, type ReadBody, sendProblem } from "@adrelay/service-kit";
import type { RequestHandler, Response } from "express";
import type { Logger } from "pino";
import { z } from "zod";
import { operatorOf } from "../../auth/operators.ts";
import { readJson } from "../../json-request.ts";
import { askLedger, parseIdInPath, sendUnavailable } from "../ledger-answers.ts";
import { parseForm } from "./forms.ts";

export interface LeaveDeadDeps {
  readonly ledger: Ledger;
  readonly deadLetters: DeadLetters;
  readonly queue: DeliveryQueue;
  readonly log: Logger;
}

/** POST /admin/v1/acknowledgments/{ad_response_id}/replay */
export function makeReplayHandler(deps: LeaveDeadDeps): RequestHandler {
  return async (request, response) => {
    const id = parseIdInPath(request, response);
    if (id === undefined) {
      return;
    }
    const by = operatorOf(response);
    const work = await leaveDead(deps, { response, id, verb: "replayed" }, deps.deadLetters.replay(id, by));
    if (work !== undefined) {
      deps.log.info({ event: "replayed", ad_response_id: id, by });
      await followInQueue(deps, work);
      response.json({ ad_response_id: id, state: "queued" });
    }
  };
}

const discardSchema = z.strictObject({
  reason: z
    .string()
    .trim()
    .min(1, "must not be empty")
    .max(DISCARD_REASON_CHARS_MAX, `must have at most ${DISCARD_REASON_CHARS_MAX} characters`),
});

/** POST /admin/v1/acknowledgments/{ad_response_id}/discard. The reason goes into the audit and nowhere else. */
export function makeDiscardHandler(deps: LeaveDeadDeps, readBody: ReadBody): RequestHandler {
  return async (request, response) => {
    const id = parseIdInPath(request, response);
    const body = id === undefined ? undefined : await readJson(readBody, request, response);
    const form = body === undefined ? undefined : parseForm(discardSchema, body.value, response);
    if (id === undefined || form === undefined) {
      return;
    }
    const by = operatorOf(response);
    const discarded = deps.deadLetters.discard(id, by, form.reason);
    const work = await leaveDead(deps, { response, id, verb: "discarded" }, discarded);
    if (work !== undefined) {
      deps.log.info({ event: "discarded", ad_response_id: id, by });
      await followInQueue(deps, work);
      response.json({ ad_response_id: id, state: "discarded" });
    }
  };
}

interface Wish {
  readonly response: Response;
  readonly id: AdResponseId;
  readonly verb: "replayed" | "discarded";
}

/** What is left to do in the queue; undefined if it was no dead letter, and the refusal has been sent. */
async function leaveDead(
  { ledger }: LeaveDeadDeps,
  { response, id, verb }: Wish,
  booking: Promise<LeaveDeadResult>,
): Promise<PayloadWork | undefined> {
  const booked = await askLedger(booking);
  if (booked === OVERDUE) {
    sendUnavailable(response);
    return undefined;
  }
  switch (booked.kind) {
    case "booked":
      return booked.work;
    case "unknown":
      sendProblem(response, "unknown_ad_response");
      return undefined;
    case "not_dead":
      sendProblem(response, "not_dead", { detail: await whyNotDead(ledger, id, verb) });
      return undefined;
    default:
      return booked satisfies never;
  }
}

/** The queue's part. If it fails here, a worker does it: the ledger noted that it is to be done. */
async function followInQueue({ deadLetters, queue, log }: LeaveDeadDeps, work: PayloadWork): Promise<void> {
  try {
    if (await isDone(queue, work)) {
      await deadLetters.finishPayloadWork(work);
    }
  } catch (err) {
    log.warn({ event: "payload_work_left_to_worker", action: work.action, ad_response_id: work.id, err });
  }
}

/** A job that an attempt holds, or that has gone, is a worker's to look into. */
async function isDone(queue: DeliveryQueue, { action, id }: PayloadWork): Promise<boolean> {
  if (action === "remove") {
    await queue.remove(id);
    return true;
  }
  const result = await queue.requeue(id);
  return result === "requeued" || result === "on_its_way";
}

async function whyNotDead(ledger: Ledger, id: AdResponseId, verb: Wish["verb"]): Promise<string> {
  const entry = await ledger.find(id).catch(() => undefined);
  return entry?.state === "refused"
    ? `The provider refused it with 406: a refused acknowledgment is never ${verb}.`
    : `Only dead letters can be ${verb}; this acknowledgment is ${entry?.state ?? "in another state"}.`;
}
