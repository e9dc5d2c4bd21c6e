import type { AdResponseId } from "@adrelay/contract";
import type { Ledger } from "@adrelay/ledger";
import type { DeliveryQueue } from "@adrelay/queue";
import { OVERDUE, sendProblem } from "@adrelay/service-kit";
import type { RequestHandler } from "express";
import type { Logger } from "pino";
import { askLedger, parseIdInPath, sendUnavailable } from "../ledger-answers.ts";

export interface ReplayDeps {
  readonly ledger: Ledger;
  readonly queue: DeliveryQueue;
  readonly log: Logger;
}

/** POST /admin/v1/acknowledgments/{ad_response_id}/replay: one dead letter back on the queue. */
export function makeReplayHandler(deps: ReplayDeps): RequestHandler {
  return async (request, response) => {
    const id = parseIdInPath(request, response);
    if (id === undefined) {
      return;
    }
    const replayed = await askLedger(deps.ledger.replay(id));
    switch (replayed) {
      case OVERDUE:
        sendUnavailable(response);
        return;
      case "unknown":
        sendProblem(response, "unknown_ad_response");
        return;
      case "not_dead":
        sendProblem(response, "not_dead", { detail: await whyNotDead(deps.ledger, id) });
        return;
      case "booked":
        deps.log.info({ event: "replayed", ad_response_id: id });
        await requeue(deps, id);
        response.json({ ad_response_id: id, state: "queued" });
        return;
      default:
        replayed satisfies never;
    }
  };
}

/** The queue's part. If it fails here, a worker does it: the ledger noted that it is to be done. */
async function requeue({ ledger, queue, log }: ReplayDeps, id: AdResponseId): Promise<void> {
  try {
    if ((await queue.requeue(id)) !== "held_by_attempt") {
      await ledger.finishPayloadWork({ action: "requeue", id });
    }
  } catch (err) {
    log.warn({ event: "requeue_left_to_worker", ad_response_id: id, err });
  }
}

async function whyNotDead(ledger: Ledger, id: AdResponseId): Promise<string> {
  const entry = await ledger.find(id).catch(() => undefined);
  return entry?.state === "refused"
    ? "The provider refused it with 406: a refused acknowledgment is never replayed."
    : `Only dead letters can be replayed; this acknowledgment is ${entry?.state ?? "in another state"}.`;
}
