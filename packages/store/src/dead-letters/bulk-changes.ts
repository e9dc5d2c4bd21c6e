/**
 * What bulk replays and bulk discards have in common: what one covers, how far it has come, and its steps.
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
  /** False if there are more, which nobody has counted. */
  readonly isComplete: boolean;
  /**
   * All of them died, or were queued, before this time, in milliseconds since 1970. What dies or is adopted later has this time
   * in the indexes, or a later one. What is queued later may have the same millisecond.
   */
  readonly beforeMs: number;
}

/** What one step did. `unknown`: the record has expired. */
export interface BulkBatch {
  readonly state: BulkState | "unknown";
  /** The outbox task of each one that was changed. */
  readonly moved: readonly OutboxTask[];
  /** Whether another step can go on at once. */
  readonly hasMore: boolean;
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
/** Records that one call of a list reads. */
const PAGE = 100;
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

  /** How many one would cover. */
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

  /** The latest ones among those that are listed, newest first. It reads as many as it needs, some in each call. */
  async latest(limit: number, isListed: (change: Change) => boolean = () => true): Promise<Change[]> {
    const { run, keys } = this.#parts;
    // If one is started meanwhile, all ranks grow by one, and the first of a page was the last of the page before.
    const listed = new Map<string, Change>();
    for (let rank = 0; listed.size < limit; rank += PAGE) {
      const args = [rank, PAGE, keys.bulkPrefix[this.#kind]];
      const reply = await run("dead-letters/latest-bulk", { keys: keys.forBulk(this.#kind, ""), args });
      const [read, found] = pageSchema.parse(reply);
      for (const [id, fields] of Object.entries(fieldsOf(found))) {
        const change = this.parse(id, fields);
        if (change !== undefined && isListed(change)) {
          listed.set(id, change);
        }
      }
      if (read < PAGE) {
        break;
      }
    }
    return [...listed.values()].slice(0, limit);
  }

  /** Ids of those that run. */
  running(): Promise<string[]> {
    return this.#parts.redis.smembers(this.#parts.keys.runningBulk[this.#kind]);
  }

  /** Advances all that run, also those that gateways of older versions started. True if there were any. */
  async runRound(): Promise<boolean> {
    const { redis, keys } = this.#parts;
    for (const older of keys.olderBulk[this.#kind]) {
      for (const id of await redis.smembers(older)) {
        await redis.smove(older, keys.runningBulk[this.#kind], id);
      }
    }
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
    return { state: state === "" ? "unknown" : state, moved, hasMore: moved.length === limit, atUs };
  }

  async #takeTurn(id: string): Promise<void> {
    const { outbox, isStopping } = this.#parts;
    // The queue part of one step runs while the ledger makes the next step.
    let inQueue: Promise<unknown> = Promise.resolve();
    for (let step = 0; step < STEPS_PER_TURN && !isStopping(); step += 1) {
      const [{ state, moved, hasMore }] = await Promise.all([this.runBatch(id, BATCH, GRACE_MS), inQueue]);
      inQueue = outbox.run(moved);
      if (state !== "running" && state !== "unknown") {
        this.logEnd(id, state);
      }
      if (state !== "running" || !hasMore) {
        break;
      }
    }
    await inQueue;
  }

  /** `details` are for the audit, `fields` for the record. `queued`: how many it covers, unless it is of dead letters. */
  protected async startOrCount(
    id: string,
    { filter, by, details, fields, queued }: BulkOrder & StartFields,
    mode: "" | "dry",
  ): Promise<CoveredCount> {
    const { run, keys } = this.#parts;
    const audited = JSON.stringify({ ...filterDetails(filter), ...details });
    const noun = this.#kind === "replay" ? "replay" : "discard";
    const shared = [by, audited, keys.bulkPrefix[this.#kind], mode, noun, queued ?? ""];
    const reply = await run("dead-letters/start-bulk", {
      keys: keys.forBulk(this.#kind, id),
      args: [id, ...filterArgs(filter), ...shared, ...Object.entries(fields).flat()],
    });
    const [matched, lastMs] = countSchema.parse(reply);
    return { matched, isComplete: true, beforeMs: lastMs + 1 };
  }
}

interface StartFields {
  readonly details: Readonly<Record<string, unknown>>;
  readonly fields: Readonly<Record<string, string | number>>;
  readonly queued?: number;
}

export const batchSchema = z.tuple([
  z.enum(["running", "completed", "cancelled", "stopped", ""]),
  z.array(outboxTaskSchema),
  z.number(),
]);
const pageSchema = z.tuple([z.number(), z.array(z.unknown())]);
const countSchema = z.tuple([z.number(), z.coerce.number()]);

function filterDetails(filter: DeadFilter): Record<string, unknown> {
  const { publisher, reason, code, onlyUnknown, sinceMs, untilMs } = filter;
  return {
    publisher: publisher ?? null,
    reason: reason ?? null,
    code: code ?? null,
    unknown: onlyUnknown === true ? true : null,
    since: isoOrNull(sinceMs),
    until: isoOrNull(untilMs),
  };
}

function isoOrNull(atMs: number | undefined): string | null {
  return atMs === undefined ? null : new Date(atMs).toISOString();
}
