/**
 * What bulk replays and bulk discards have in common: which dead letters one covers, how far it has come, and its steps.
 *
 * Each is a record in Redis and nothing else. Every worker advances it, and none owns it, so a worker that dies
 * takes nothing with it (docs/adr/0012). Outbox tasks that a dead worker left are done by the sweep of any other.
 */
import type { Redis } from "ioredis";
import { z } from "zod";
import type { BulkKind, StoreKeys } from "../redis/keys.ts";
import { CANCEL_CODES, type CancelCode, decodeReply, fieldsOf, type RunScript } from "../redis/scripts.ts";
import type { StoreLog } from "../store-log.ts";
import type { BulkState } from "./bulk-record.ts";
import { type DeadFilter, filterArgs } from "./listing.ts";
import { type Outbox, type OutboxTask, outboxTaskSchema, TASK_AHEAD_MAX_MS } from "./outbox.ts";

export interface BulkOrder {
  readonly filter: DeadFilter;
  /** The operator who starts it, for its record and the audit. */
  readonly by: string;
}

/** What a filter covers now. */
export interface CoveredCount {
  readonly matched: number;
  /** All of them died before this time, in milliseconds since 1970. Letters that die later die at this time or after. */
  readonly beforeMs: number;
}

/** What one step did. `unknown`: the record has expired. */
export interface BulkBatch {
  readonly state: BulkState | "unknown";
  /** The outbox task of each letter that was changed. */
  readonly moved: readonly OutboxTask[];
  /** Redis' time of the step, in µs since 1970. */
  readonly atUs: number;
}

export interface BulkParts {
  readonly redis: Redis;
  readonly run: RunScript;
  readonly keys: StoreKeys;
  readonly recordRetentionMs: number;
  readonly outbox: Outbox;
  readonly log: StoreLog;
  isStopping(): boolean;
}

/** Letters a step: keeps its script at a few milliseconds. */
const BATCH = 100;
/** Steps of one change in a row before the next one has its turn. */
const STEPS_PER_TURN = 20;
/** For this long only the worker that made a step does its outbox tasks. */
const GRACE_MS = TASK_AHEAD_MAX_MS;
/** A bulk replay waits for its sample no longer than this: the sample may be retried for hours. */
const SAMPLE_MAX_MS = 10_000;

export abstract class BulkChanges<Change> {
  readonly #parts: BulkParts;
  readonly #kind: BulkKind;

  constructor(kind: BulkKind, parts: BulkParts) {
    this.#kind = kind;
    this.#parts = parts;
  }

  protected abstract parse(id: string, reply: unknown): Change | undefined;
  protected abstract logEnd(id: string, state: BulkState): void;

  /** How many dead letters one would cover. */
  count(filter: DeadFilter): Promise<CoveredCount> {
    return this.startOrCount("", { filter, by: "", details: {}, fields: {} }, "dry");
  }

  async cancel(id: string, by: string): Promise<CancelCode> {
    const { run, keys, recordRetentionMs } = this.#parts;
    const call = { keys: keys.forBulk(this.#kind, id), args: [id, by, recordRetentionMs, this.#kind] };
    return decodeReply(CANCEL_CODES, await run("dead-letters/cancel-bulk", call));
  }

  async find(id: string): Promise<Change | undefined> {
    const { redis, keys } = this.#parts;
    return this.parse(id, await redis.call("HGETALL", keys.bulkPrefix[this.#kind] + id));
  }

  /** The latest ones, newest first. */
  async latest(limit: number): Promise<Change[]> {
    const { run, keys } = this.#parts;
    const call = { keys: keys.forBulk(this.#kind, ""), args: [limit, keys.bulkPrefix[this.#kind]] };
    const found = fieldsOf(await run("dead-letters/latest-bulk", call));
    return Object.entries(found).flatMap(([id, fields]) => this.parse(id, fields) ?? []);
  }

  /** Ids of those that run. */
  running(): Promise<string[]> {
    return this.#parts.redis.smembers(this.#parts.keys.runningBulk[this.#kind]);
  }

  /** Advances all that run. True if there were any. */
  async runRound(): Promise<boolean> {
    const running = await this.running();
    for (const id of running) {
      await this.#takeTurn(id);
    }
    return running.length > 0;
  }

  /**
   * Advances one by a step; see dead-letters/replay-batch.lua and dead-letters/discard-batch.lua. The outbox tasks of the
   * letters that were changed belong to the caller for `graceMs`, and then to any worker.
   */
  async runBatch(id: string, limit: number, graceMs: number): Promise<BulkBatch> {
    const { run, keys, recordRetentionMs } = this.#parts;
    const reply = await run(`dead-letters/${this.#kind}-batch`, {
      keys: keys.forBulk(this.#kind, id),
      args: [id, limit, keys.entryPrefix, graceMs, recordRetentionMs, SAMPLE_MAX_MS],
    });
    const [state, moved, atUs] = batchSchema.parse(reply);
    return { state: state === "" ? "unknown" : state, moved, atUs };
  }

  async #takeTurn(id: string): Promise<void> {
    const { outbox, isStopping } = this.#parts;
    // The queue part of one step runs while the ledger makes the next step.
    let inQueue: Promise<unknown> = Promise.resolve();
    for (let step = 0; step < STEPS_PER_TURN && !isStopping(); step += 1) {
      const [{ state, moved }] = await Promise.all([this.runBatch(id, BATCH, GRACE_MS), inQueue]);
      inQueue = outbox.run(moved);
      if (state !== "running" && state !== "unknown") {
        this.logEnd(id, state);
      }
      if (state !== "running" || moved.length < BATCH) {
        break;
      }
    }
    await inQueue;
  }

  /** `details` are for the audit, `fields` for the record. */
  protected async startOrCount(
    id: string,
    { filter, by, details, fields }: BulkOrder & StartFields,
    mode: "" | "dry",
  ): Promise<CoveredCount> {
    const { run, keys } = this.#parts;
    const audited = JSON.stringify({ ...filterDetails(filter), ...details });
    const shared = [by, audited, keys.bulkPrefix[this.#kind], mode, this.#kind];
    const reply = await run("dead-letters/start-bulk", {
      keys: keys.forBulk(this.#kind, id),
      args: [id, ...filterArgs(filter), ...shared, ...Object.entries(fields).flat()],
    });
    const [matched, lastMs] = countSchema.parse(reply);
    return { matched, beforeMs: lastMs + 1 };
  }
}

interface StartFields {
  readonly details: Readonly<Record<string, unknown>>;
  readonly fields: Readonly<Record<string, string | number>>;
}

const batchSchema = z.tuple([
  z.enum(["running", "completed", "cancelled", "stopped", ""]),
  z.array(outboxTaskSchema),
  z.number(),
]);
const countSchema = z.tuple([z.number(), z.coerce.number()]);

function filterDetails({ publisher, reason, code, sinceMs, untilMs }: DeadFilter): Record<string, unknown> {
  return {
    publisher: publisher ?? null,
    reason: reason ?? null,
    code: code ?? null,
    since: isoOrNull(sinceMs),
    until: isoOrNull(untilMs),
  };
}

function isoOrNull(atMs: number | undefined): string | null {
  return atMs === undefined ? null : new Date(atMs).toISOString();
}
