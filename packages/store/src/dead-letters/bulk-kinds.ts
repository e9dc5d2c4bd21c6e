/** Bulk replays and bulk discards: how each is ordered, read and logged. */
import { randomUUID } from "node:crypto";
import type { StoreLog } from "../store-log.ts";
import { BulkChanges, type BulkOrder, type BulkParts } from "./bulk-changes.ts";
import {
  type BulkDiscard,
  type BulkReplay,
  type BulkState,
  parseDiscard,
  parseReplay,
  type StopRule,
} from "./bulk-record.ts";

export interface ReplayOrder extends BulkOrder {
  readonly ratePerSecond: number;
  /** Undefined: it never stops by itself. */
  readonly stop?: StopRule | undefined;
}

export interface DiscardOrder extends BulkOrder {
  /** Why, in the operator's words. Only the audit keeps it. */
  readonly why: string;
}

export class BulkReplays extends BulkChanges<BulkReplay> {
  readonly #parts: BulkParts;

  constructor(parts: BulkParts) {
    super("replay", parts);
    this.#parts = parts;
  }

  /** Starts one; resolves with its id. */
  async start({ filter, by, ratePerSecond, stop }: ReplayOrder): Promise<string> {
    const id = randomUUID();
    const details = { rate_per_second: ratePerSecond, stop_at_share: stop?.share ?? null };
    const fields = {
      rate: ratePerSecond,
      stop_share: stop?.share ?? "",
      stop_least: stop?.least ?? 0,
      replayed: 0,
    };
    await this.startOrCount(id, { filter, by, details, fields }, "");
    return id;
  }

  protected override parse(id: string, reply: unknown): BulkReplay | undefined {
    return parseReplay(id, reply);
  }

  protected override logEnd(id: string, state: BulkState): void {
    if (state === "completed") {
      this.#parts.log.info({ event: "replay_completed", replay_id: id });
    } else if (state === "stopped") {
      this.#parts.log.warn({ event: "replay_stopped", replay_id: id });
    }
  }
}

export class BulkDiscards extends BulkChanges<BulkDiscard> {
  readonly #log: StoreLog;

  constructor(parts: BulkParts) {
    super("discard", parts);
    this.#log = parts.log;
  }

  /** Starts one; resolves with its id. */
  async start({ filter, by, why }: DiscardOrder): Promise<string> {
    const id = randomUUID();
    await this.startOrCount(id, { filter, by, details: { why }, fields: {} }, "");
    return id;
  }

  protected override parse(id: string, reply: unknown): BulkDiscard | undefined {
    return parseDiscard(id, reply);
  }

  protected override logEnd(id: string, state: BulkState): void {
    if (state === "completed") {
      this.#log.info({ event: "discard_completed", discard_id: id });
    }
  }
}
