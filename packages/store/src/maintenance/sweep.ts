/** One round of the sweep: deadlines that passed, dead letters past their retention, and outbox tasks that are due. */
import { z } from "zod";
import type { ReplaysParts } from "../dead-letters/replays.ts";

/** A round ends at the next batch while the process stops. */
export type SweepParts = Omit<ReplaysParts, "redis">;

/** Ids per script: keeps each script well below a millisecond or two. */
const BATCH = 200;
/** Batches per round, so that a round is bounded and a stop is quick. */
const BATCHES_PER_ROUND = 50;
/** An outbox task that an attempt holds up, or whose worker died, comes up again after this. */
const OUTBOX_LEASE_MS = 1000;

export class Sweep {
  readonly #parts: SweepParts;

  constructor(parts: SweepParts) {
    this.#parts = parts;
  }

  async runRound(deadLetterRetentionMs: number): Promise<void> {
    const missed = await inBatches(() => this.sweepMissed(BATCH));
    const expired = await inBatches(() => this.sweepExpired(BATCH, deadLetterRetentionMs));
    if (missed > 0 || expired > 0) {
      this.#parts.log.warn({ event: "swept", missed, expired });
    }
    await this.#runOutbox();
  }

  /** Moves overdue ad responses to missed; resolves with how many were checked, at most `limit`. */
  sweepMissed(limit: number): Promise<number> {
    return this.#sweep("miss", limit, []);
  }

  /** Expires dead letters older than `deadLetterRetentionMs`; resolves with how many were checked. */
  sweepExpired(limit: number, deadLetterRetentionMs: number): Promise<number> {
    return this.#sweep("expire", limit, [deadLetterRetentionMs]);
  }

  async #sweep(event: "miss" | "expire", limit: number, more: readonly number[]): Promise<number> {
    const { run, keys, recordRetentionMs } = this.#parts;
    const args = [event, limit, recordRetentionMs, keys.entryPrefix, ...more];
    return z.number().parse(await run("maintenance/sweep", { keys: keys.forEntry(""), args }));
  }

  /** Does all tasks that are due. A task that has to wait comes up again in a later round. */
  async #runOutbox(): Promise<void> {
    const { outbox, isStopping } = this.#parts;
    for (let round = 0; round < BATCHES_PER_ROUND && !isStopping(); round += 1) {
      const tasks = await outbox.leaseDue(BATCH, OUTBOX_LEASE_MS);
      await outbox.run(tasks);
      if (tasks.length < BATCH) {
        break;
      }
    }
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
