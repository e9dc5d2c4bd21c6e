/** What an operator does with one acknowledgment: put a dead letter back on the queue, or end it for good. */
import type { AdResponseId } from "@adrelay/contract";
import { OVERDUE, type ReadBody, sendProblem } from "@adrelay/service-kit";
import type { Store } from "@adrelay/store";
import type { RequestHandler, Response } from "express";
import type { Logger } from "pino";
import { z } from "zod";
import { askStore, parseIdInPath, sendUnavailable } from "../store-answers.ts";
import { actorOf, maySeeId, operatorOf } from "./access.ts";
import { discardReasonSchema, readForm } from "./forms.ts";

export interface ChangeDeps {
  readonly acknowledgments: Pick<Store["acknowledgments"], "find">;
  readonly deadLetters: Store["deadLetters"];
  readonly log: Logger;
}

/** POST /admin/v1/acknowledgments/{ad_response_id}/replay */
export function makeReplayHandler(deps: ChangeDeps): RequestHandler {
  return async (request, response) => {
    const id = parseIdInPath(request, response);
    if (id === undefined) {
      return;
    }
    const replay = () => deps.deadLetters.replay(id, actorOf(response));
    if (await change(deps, { response, id, verb: "replayed" }, replay)) {
      response.json({ ad_response_id: id, state: "queued" });
    }
  };
}

/** Body of the discard of one acknowledgment. */
export const discardSchema = z.strictObject({ reason: discardReasonSchema });

/**
 * POST /admin/v1/acknowledgments/{ad_response_id}/discard. It takes dead letters and queued acknowledgments. The reason is
 * only written to the audit.
 */
export function makeDiscardHandler(deps: ChangeDeps, readBody: ReadBody): RequestHandler {
  return async (request, response) => {
    const id = parseIdInPath(request, response);
    const form = id && (await readForm(discardSchema, readBody, { request, response }));
    if (id === undefined || form === undefined) {
      return;
    }
    const discard = () => deps.deadLetters.discard(id, actorOf(response), form.reason);
    if (await change(deps, { response, id, verb: "discarded" }, discard)) {
      response.json({ ad_response_id: id, state: "discarded" });
    }
  };
}

interface Order {
  readonly response: Response;
  readonly id: AdResponseId;
  readonly verb: "replayed" | "discarded";
}

/** True once the change is booked, and the queue has followed; false if a refusal was sent. */
async function change(
  { acknowledgments, log }: ChangeDeps,
  { response, id, verb }: Order,
  makeChange: () => ReturnType<Store["deadLetters"]["replay"]>,
): Promise<boolean> {
  const result = await askStore(changeIfSeen(acknowledgments, { response, id }, makeChange));
  if (result === OVERDUE) {
    sendUnavailable(response);
    return false;
  }
  switch (result.kind) {
    case "booked":
      if (verb === "replayed") {
        log.info({ event: "replayed", ad_response_id: id, by: operatorOf(response) });
      } else {
        log.info({ event: "discarded", ad_response_id: id, by: operatorOf(response) });
      }
      await result.followed;
      return true;
    case "unknown":
      sendProblem(response, "unknown_ad_response");
      return false;
    case "wrong_state":
      sendProblem(response, "not_dead", { detail: await whyNot(acknowledgments, id, verb) });
      return false;
    case "attempt_under_way":
      sendUnderWay(response);
      return false;
    default:
      return result satisfies never;
  }
}

async function changeIfSeen(
  acknowledgments: ChangeDeps["acknowledgments"],
  { response, id }: Pick<Order, "response" | "id">,
  makeChange: () => ReturnType<Store["deadLetters"]["replay"]>,
): ReturnType<Store["deadLetters"]["replay"]> {
  return (await maySeeId(acknowledgments, id, response)) ? await makeChange() : { kind: "unknown" };
}

/** Half of an attempt's usual bound, `DELIVERY_TIMEOUT_MS` of the workers. */
const UNDER_WAY_RETRY_AFTER_SECONDS = "5";

function sendUnderWay(response: Response): void {
  response.set("Retry-After", UNDER_WAY_RETRY_AFTER_SECONDS);
  sendProblem(response, "attempt_under_way", {
    detail: "The provider may be taking it at this moment. Nothing was changed: try again in a few seconds.",
  });
}

const CHANGEABLE = {
  replayed: "dead letters",
  discarded: "dead letters and queued acknowledgments",
} as const;

async function whyNot(
  acknowledgments: ChangeDeps["acknowledgments"],
  id: AdResponseId,
  verb: Order["verb"],
): Promise<string> {
  const entry = await acknowledgments.find(id).catch(() => undefined);
  return entry?.state === "refused"
    ? `The provider refused it with 406: a refused acknowledgment is never ${verb}.`
    : `Only ${CHANGEABLE[verb]} can be ${verb}; this acknowledgment is ${entry?.state ?? "in another state"}.`;
}
