import type { Ledger, PayloadWork } from "@adrelay/ledger";
import type { DeliveryQueue } from "@adrelay/queue";
import type { Logger } from "pino";

export interface SweepDeps {
  readonly ledger: Ledger;
  readonly queue: DeliveryQueue;
  readonly log: Logger;
  readonly deadLetterRetentionMs: number;
}

/** Ids per script: keeps each script well below a millisecond or two. */
const BATCH = 200;
/** Batches per round, so that one round is bounded and a stop is quick. */
const BATCHES_PER_ROUND = 50;

/** One round: deadlines that passed, dead letters past retention, and what these left to do in the queue. */
export async function sweepOnce({ ledger, queue, log, deadLetterRetentionMs }: SweepDeps): Promise<void> {
  const missed = await inBatches(() => ledger.sweepMissed(BATCH));
  const expired = await inBatches(() => ledger.sweepExpired(BATCH, deadLetterRetentionMs));
  if (missed > 0 || expired > 0) {
    log.warn({ event: "swept", missed, expired });
  }
  for (const work of await ledger.pendingPayloadWork(BATCH)) {
    await doPayloadWork({ ledger, queue, log }, work);
  }
}

async function inBatches(sweep: () => Promise<number>): Promise<number> {
  let total = 0;
  for (let round = 0; round < BATCHES_PER_ROUND; round += 1) {
    const found = await sweep();
    total += found;
    if (found < BATCH) {
      break;
    }
  }
  return total;
}

/** Finishes what a replay, discard or expiry began: the ledger moved first, the queue follows (invariant 3). */
async function doPayloadWork(
  { ledger, queue, log }: Omit<SweepDeps, "deadLetterRetentionMs">,
  work: PayloadWork,
) {
  try {
    if (await isDone({ ledger, queue, log }, work)) {
      await ledger.finishPayloadWork(work);
    }
  } catch (err) {
    // A running attempt holds the job: the next round finds the work again.
    log.warn({ event: "payload_work_postponed", action: work.action, ad_response_id: work.id, err });
  }
}

/** Does the work; false if it is to be looked at again in the next round. */
async function isDone(
  { ledger, queue, log }: Omit<SweepDeps, "deadLetterRetentionMs">,
  { action, id }: PayloadWork,
): Promise<boolean> {
  if (action === "remove") {
    await queue.remove(id);
    return true;
  }
  const result = await queue.requeue(id);
  // A delivery that was quicker than this look has taken the payload with it.
  if (result === "gone" && (await ledger.find(id))?.state === "queued") {
    log.error({ event: "payload_gone", ad_response_id: id });
  }
  return result !== "held_by_attempt";
}
