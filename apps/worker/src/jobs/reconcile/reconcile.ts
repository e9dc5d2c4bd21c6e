import type { Ledger, QueuedEntry } from "@adrelay/ledger";
import { type PayloadWorkDeps, requeue } from "../sweep/payload-work.ts";

export interface ReconcileDeps extends PayloadWorkDeps {
  readonly ledger: Ledger;
}

/** Entries a round: a hundred thousand that wait out an outage are looked at within a quarter of an hour. */
const BATCH = 100;
/** An entry younger than this may be on its way between ledger and queue. */
const AGE_MIN_MS = 60_000;

/**
 * Compares the books with the queue, a batch a round, the oldest first, again and again.
 *
 * - What the ledger calls queued and the queue keeps as failed is put back; what the queue doesn't hold any more
 *   is lost and becomes a dead letter that says so. Both come of lost data alone, and would wait for ever.
 * - What should have been attempted and is still put off comes back now: the clock that put it off was ahead.
 */
export function makeReconcile(deps: ReconcileDeps): () => Promise<void> {
  let rank = 0;
  return async () => {
    const entries = await deps.ledger.queuedFrom(rank, { limit: BATCH, ageMinMs: AGE_MIN_MS });
    await Promise.all(entries.map((entry) => reconcileOne(deps, entry)));
    // Those that have left the queue meanwhile make it skip some: these have their turn the next time round.
    rank = entries.length < BATCH ? 0 : rank + BATCH;
  };
}

async function reconcileOne(deps: ReconcileDeps, { id, isOverdue }: QueuedEntry): Promise<void> {
  if ((await requeue(deps, id)) === "on_its_way" && isOverdue) {
    await deps.queue.promote(id);
  }
}
