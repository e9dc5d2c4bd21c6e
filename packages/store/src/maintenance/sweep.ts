/**
 * One round of the sweep: times that a step of Redis' clock left too far ahead, deadlines that passed, turns that are due, dead
 * letters past their retention, and outbox tasks that are due. The first rounds also index dead letters of older versions by the provider's codes and by unknown ids.
 */
import { z } from "zod";
import type { DeliveryQueue } from "../bullmq/queue.ts";
import type { BulkParts } from "../dead-letters/bulk-changes.ts";
import { TASK_AHEAD_MAX_MS } from "../dead-letters/outbox.ts";
import type { DueTurns } from "../journal/due-turns.ts";
import { idOf } from "../redis/keys.ts";

/** A round ends at the next batch while the process stops. */
export interface SweepParts extends Omit<BulkParts, "redis"> {
  readonly queue: Pick<DeliveryQueue, "shortenLocks">;
  readonly dueTurns: Pick<DueTurns, "settleAll">;
  /** How long Redis must have answered without a break before turns are settled. */
  readonly turnGraceMs: number;
}

/** Ids per script: keeps each script well below a millisecond or two. */
const BATCH = 200;
/** Batches per round, so that a round is bounded and a stop is quick. */
const BATCHES_PER_ROUND = 50;
/** An outbox task that an attempt holds up, or whose worker died, comes up again after this. */
const OUTBOX_LEASE_MS = 1000;

export class Sweep {
  readonly #parts: SweepParts;
  /** The last letter that was indexed, and its time of death; undefined at the end. */
  #indexed: readonly [string, string] | undefined = ["", ""];

  constructor(parts: SweepParts) {
    this.#parts = parts;
  }

  async runRound(deadLetterRetentionMs: number): Promise<void> {
    await this.#mendTimes();
    let withTurn = 0;
    const overdue = await inBatches(async () => {
      const swept = await this.#sweepAwaiting(BATCH);
      withTurn += swept.withTurn;
      return swept.checked;
    });
    const expired = await inBatches(() => this.sweepExpired(BATCH, deadLetterRetentionMs));
    if (overdue > withTurn || expired > 0) {
      this.#parts.log.warn({ event: "swept", missed: overdue - withTurn, expired });
    }
    await this.#runOutbox();
    await this.#indexDeaths();
  }

  /**
   * Moves overdue ad responses to missed, and settles turns that are due; resolves with how many were checked, at most
   * `limit`.
   */
  async sweepMissed(limit: number): Promise<number> {
    return (await this.#sweepAwaiting(limit)).checked;
  }

  async #sweepAwaiting(limit: number) {
    const { dueTurns, turnGraceMs } = this.#parts;
    const [checked, withTurn, ...claimed] = await this.#sweep("miss", limit, turnGraceMs);
    await dueTurns.settleAll(claimed.map(idOf));
    return { checked, withTurn };
  }

  /** Expires dead letters older than `deadLetterRetentionMs`; resolves with how many were checked. */
  async sweepExpired(limit: number, deadLetterRetentionMs: number): Promise<number> {
    const [checked] = await this.#sweep("expire", limit, deadLetterRetentionMs);
    return checked;
  }

  async #sweep(event: "miss" | "expire", limit: number, ms: number): Promise<z.infer<typeof sweptSchema>> {
    const { run, keys, recordRetentionMs } = this.#parts;
    const args = [event, limit, recordRetentionMs, keys.entryPrefix, ms];
    const sweptKeys = [...keys.forEntry(""), keys.heartbeat];
    return sweptSchema.parse(await run("maintenance/sweep", { keys: sweptKeys, args }));
  }

  /** See maintenance/clock-set-back.lua. */
  async #mendTimes(): Promise<void> {
    const { run, keys, queue, log } = this.#parts;
    const call = { keys: keys.forEntry(""), args: [BATCH, keys.entryPrefix, TASK_AHEAD_MAX_MS] };
    const mend = async () => z.number().parse(await run("maintenance/clock-set-back", call));
    const mended = (await inBatches(mend)) + (await queue.shortenLocks());
    if (mended > 0) {
      log.warn({ event: "redis_clock_set_back", mended });
    }
  }

  /** Once for each worker's start, because an older version may have run until then. See maintenance/index-deaths.lua. */
  async #indexDeaths(): Promise<void> {
    const { run, keys, isStopping } = this.#parts;
    for (let step = 0; step < BATCHES_PER_ROUND && this.#indexed !== undefined && !isStopping(); step += 1) {
      const args = [...this.#indexed, BATCH, keys.entryPrefix];
      const last = placeSchema.parse(
        await run("maintenance/index-deaths", { keys: keys.forEntry(""), args }),
      );
      this.#indexed = last[0] === "" ? undefined : last;
    }
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

const sweptSchema = z.tuple([z.number(), z.number()]).rest(z.string());
const placeSchema = z.tuple([z.string(), z.string()]);

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
