import { type AdResponseId, adResponseIdSchema } from "@adrelay/contract";
import type { Ledger } from "@adrelay/ledger";
import type { DeliveryQueue } from "@adrelay/queue";
import { OVERDUE, sendProblem, withDeadline } from "@adrelay/service-kit";
import type { RequestHandler } from "express";
import type { Logger } from "pino";

export interface ReplayDeps {
  readonly ledger: Ledger;
  readonly queue: DeliveryQueue;
  readonly log: Logger;
}

const LEDGER_TIMEOUT_MS = 900;

/** POST /admin/v1/acknowledgments/{ad_response_id}/replay: one dead letter back on the queue. */
export function makeReplayHandler(deps: ReplayDeps): RequestHandler {
  return async (request, response) => {
    const id = adResponseIdSchema.safeParse(request.params["ad_response_id"]);
    if (!id.success) {
      sendProblem(response, "validation_failed", {
        errors: [{ path: "ad_response_id", message: "ad_response_id must be a UUID" }],
      });
      return;
    }
    const replayed = await withDeadline(
      deps.ledger.replay(id.data).catch((): typeof OVERDUE => OVERDUE),
      LEDGER_TIMEOUT_MS,
    );
    switch (replayed) {
      case OVERDUE:
        response.set("Retry-After", "1");
        sendProblem(response, "queue_unavailable");
        return;
      case "unknown":
        sendProblem(response, "unknown_ad_response");
        return;
      case "not_dead":
        sendProblem(response, "not_dead", { detail: await whyNotDead(deps.ledger, id.data) });
        return;
      case "booked":
        deps.log.info({ event: "replayed", ad_response_id: id.data });
        await requeue(deps, id.data);
        response.json({ ad_response_id: id.data, state: "queued" });
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
