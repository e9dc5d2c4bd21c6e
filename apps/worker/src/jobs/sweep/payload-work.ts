import type { AdResponseId } from "@adrelay/contract";
import type { DeadLetters, PayloadWork } from "@adrelay/ledger";
import type { DeliveryQueue, RequeueResult } from "@adrelay/queue";
import type { Logger } from "pino";

export interface PayloadWorkDeps {
  readonly deadLetters: DeadLetters;
  readonly queue: DeliveryQueue;
  readonly log: Logger;
}

/** Jobs that are looked at in the queue at once: in one write to Redis, also beside busy deliveries. */
const CONCURRENCY = 100;

/**
 * Finishes what a replay, discard or expiry began: the ledger moved first, the queue follows (invariant 3).
 * What can't be done now keeps its note and comes up again. Answers how many notes were finished.
 */
export async function doPayloadWork(deps: PayloadWorkDeps, works: readonly PayloadWork[]): Promise<number> {
  const done: PayloadWork[] = [];
  const left = works.values();
  const lane = async () => {
    for (const work of left) {
      if (await tryWork(deps, work)) {
        done.push(work);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, works.length) }, lane));
  await deps.deadLetters.finishPayloadWork(...done);
  return done.length;
}

async function tryWork(deps: PayloadWorkDeps, work: PayloadWork): Promise<boolean> {
  try {
    return await isDone(deps, work);
  } catch (err) {
    // A running attempt holds the job, or Redis is away: a later round finds the work again.
    deps.log.warn({ event: "payload_work_postponed", action: work.action, ad_response_id: work.id, err });
    return false;
  }
}

/** Does the work; false if it is to be looked at again. */
async function isDone(deps: PayloadWorkDeps, { action, id }: PayloadWork): Promise<boolean> {
  if (action === "requeue") {
    return (await requeue(deps, id)) !== "held_by_attempt";
  }
  await deps.queue.remove(id);
  return true;
}

/** Puts a failed job back; one whose text is gone becomes a dead letter that says so. */
export async function requeue(
  { deadLetters, queue, log }: PayloadWorkDeps,
  id: AdResponseId,
): Promise<RequeueResult> {
  const result = await queue.requeue(id);
  // A delivery that was quicker than this look has taken the payload with it; the ledger knows.
  if (result === "gone" && (await deadLetters.losePayload(id, queue.payloadRef(id).key))) {
    log.error({ event: "payload_lost", ad_response_id: id });
  }
  return result;
}
