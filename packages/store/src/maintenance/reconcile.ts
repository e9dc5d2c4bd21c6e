/** Compares the ledger with the queue, and repairs what lost data or wrong clocks left behind. */
import type { AdResponseId } from "@adrelay/contract";
import { z } from "zod";
import type { DeliveryQueue } from "../bullmq/queue.ts";
import type { Outbox } from "../dead-letters/outbox.ts";
import { idOf, type StoreKeys } from "../redis/keys.ts";
import { fieldsOf, type RunScript } from "../redis/scripts.ts";

export interface ReconcileParts {
  readonly run: RunScript;
  readonly keys: StoreKeys;
  readonly queue: DeliveryQueue;
  readonly outbox: Outbox;
}

interface QueuedAd {
  readonly id: AdResponseId;
  /** Its attempt should have been made by now, and it isn't parked. */
  readonly isOverdue: boolean;
}

/** Entries a round: a hundred thousand that wait out an outage are compared within a quarter of an hour. */
const BATCH = 100;
/** A younger entry may be on its way between ledger and queue. */
const AGE_MIN_MS = 60_000;
/** An attempt that is this much overdue isn't just under way, or behind others. */
const OVERDUE_GRACE_MS = 5000;

export class Reconciliation {
  readonly #parts: ReconcileParts;
  /** Rank of the next entry to compare; 0 is the oldest. */
  #rank = 0;

  constructor(parts: ReconcileParts) {
    this.#parts = parts;
  }

  /**
   * Compares the next batch of queued entries with the queue, oldest first. After the last one it begins again.
   *
   * - If the queue keeps the job as failed, it is put back. If the queue has no job, its text is lost: the entry becomes a
   *   dead letter that says so. Only lost data cause either.
   * - If an attempt should have been made and its job is still delayed, the job comes back now: the clock of the worker that
   *   delayed it was ahead.
   */
  async runRound(): Promise<void> {
    const ads = await this.#loadQueued();
    await Promise.all(ads.map((ad) => this.#reconcile(ad)));
    // Entries that left the queue meanwhile make this skip some. Those are compared in the next pass.
    this.#rank = ads.length < BATCH ? 0 : this.#rank + BATCH;
  }

  /**
   * Brings back jobs whose attempt is overdue by Redis' clock: the clock of the worker that delayed them was ahead. A job
   * that waits or runs already stays where it is.
   */
  async promoteOverdue(): Promise<void> {
    const { run, keys, queue } = this.#parts;
    const reply = await run("maintenance/overdue-attempts", {
      keys: keys.forEntry(""),
      args: [BATCH, OVERDUE_GRACE_MS, keys.entryPrefix],
    });
    const ids = z.array(z.string()).parse(reply).map(idOf);
    await Promise.all(ids.map((id) => queue.promote(id)));
  }

  async #reconcile({ id, isOverdue }: QueuedAd): Promise<void> {
    const { queue, outbox } = this.#parts;
    if ((await outbox.requeue(id)) === "on_its_way" && isOverdue) {
      await queue.promote(id);
    }
  }

  async #loadQueued(): Promise<QueuedAd[]> {
    const { run, keys } = this.#parts;
    const reply = await run("maintenance/queued-batch", {
      keys: keys.forEntry(""),
      args: [this.#rank, BATCH, AGE_MIN_MS, keys.entryPrefix, keys.parkedPrefix],
    });
    return Object.entries(fieldsOf(reply)).map(([member, isOverdue]) => {
      return { id: idOf(member), isOverdue: isOverdue === 1 };
    });
  }
}
