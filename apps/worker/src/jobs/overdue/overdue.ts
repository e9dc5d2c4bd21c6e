import type { Ledger } from "@adrelay/ledger";
import type { DeliveryQueue } from "@adrelay/queue";

export interface OverdueDeps {
  readonly ledger: Ledger;
  readonly queue: DeliveryQueue;
}

const BATCH = 100;
/** An attempt may be under way, or its job among many that wait. */
const GRACE_MS = 5000;

/**
 * Brings back jobs whose attempt is overdue by Redis' clock: the worker that put them off had a clock that was
 * ahead. A job that waits or runs already stays as it is.
 */
export async function bringBackOverdue({ ledger, queue }: OverdueDeps): Promise<void> {
  const ids = await ledger.overdueAttempts(BATCH, GRACE_MS);
  await Promise.all(ids.map((id) => queue.promote(id)));
}
