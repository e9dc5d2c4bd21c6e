/**
 * Bulk replays: which dead letters one covers, how far it has come, and its steps.
 *
 * A replay is a record in Redis and nothing else. Every worker advances it, and none owns it, so a worker that dies
 * takes nothing with it (docs/adr/0012). Outbox tasks that a dead worker left are done by the sweep of any other.
 */
import { randomUUID } from "node:crypto";
import { publisherIdSchema } from "@adrelay/contract";
import { DEAD_REASONS } from "@adrelay/core";
import type { Redis } from "ioredis";
import { z } from "zod";
import type { StoreKeys } from "../redis/keys.ts";
import { CANCEL_CODES, type CancelCode, decodeReply, fieldsOf, type RunScript } from "../redis/scripts.ts";
import type { StoreLog } from "../store-log.ts";
import { type DeadFilter, filterArgs } from "./listing.ts";
import { type Outbox, type OutboxTask, outboxTaskSchema, TASK_AHEAD_MAX_MS } from "./outbox.ts";

const REPLAY_STATES = ["running", "completed", "cancelled"] as const;
type ReplayState = (typeof REPLAY_STATES)[number];

export interface ReplayOrder {
  readonly filter: DeadFilter;
  readonly ratePerSecond: number;
  /** The operator who starts it, for its record and the audit. */
  readonly by: string;
}

const time = z.coerce.number();
const none = (text: string) => (text === "" ? undefined : text);
const noneOr = <T extends z.ZodType<unknown, string>>(type: T) =>
  z.string().transform(none).pipe(type.optional());

const replaySchema = z
  .object({
    state: z.enum(REPLAY_STATES),
    publisher: noneOr(publisherIdSchema),
    reason: noneOr(z.enum(DEAD_REASONS)),
    since: noneOr(z.string().transform(Number)),
    until: noneOr(z.string().transform(Number)),
    rate: z.coerce.number(),
    matched: z.coerce.number(),
    replayed: z.coerce.number(),
    created: time,
    by: z.string(),
    updated: time,
    ended: time.optional(),
  })
  .transform((stored) => ({
    state: stored.state,
    filter: {
      publisher: stored.publisher,
      reason: stored.reason,
      sinceMs: stored.since,
      untilMs: stored.until,
    } satisfies DeadFilter,
    ratePerSecond: stored.rate,
    /** How many dead letters it covered at its start, and how many it has put back on the queue. */
    matched: stored.matched,
    replayed: stored.replayed,
    createdAtMs: stored.created,
    createdBy: stored.by,
    updatedAtMs: stored.updated,
    endedAtMs: stored.ended,
  }));

/** A bulk replay with its progress. */
export type BulkReplay = z.infer<typeof replaySchema> & { readonly id: string };

/** What one step did. `unknown`: the record has expired. */
export interface ReplayBatch {
  readonly state: ReplayState | "unknown";
  /** The outbox task of each letter that was moved to queued. */
  readonly moved: readonly OutboxTask[];
  /** Redis' time of the step, in µs since 1970. */
  readonly atUs: number;
}

export interface ReplaysParts {
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
/** Steps of one replay in a row before the next replay has its turn. */
const STEPS_PER_TURN = 20;
/** For this long only the worker that made a step does its outbox tasks. */
const GRACE_MS = TASK_AHEAD_MAX_MS;

export class Replays {
  readonly #parts: ReplaysParts;

  constructor(parts: ReplaysParts) {
    this.#parts = parts;
  }

  /** Starts one; resolves with its id. */
  async start(order: ReplayOrder): Promise<string> {
    const id = randomUUID();
    await this.#startOrCount(id, order, "");
    return id;
  }

  /** How many dead letters one would cover. */
  count(filter: DeadFilter): Promise<number> {
    return this.#startOrCount("", { filter, ratePerSecond: 1, by: "" }, "dry");
  }

  async cancel(id: string, by: string): Promise<CancelCode> {
    const { run, keys, recordRetentionMs } = this.#parts;
    const call = { keys: keys.forReplay(id), args: [id, by, recordRetentionMs] };
    return decodeReply(CANCEL_CODES, await run("dead-letters/cancel-replay", call));
  }

  async find(id: string): Promise<BulkReplay | undefined> {
    const { redis, keys } = this.#parts;
    return parseReplay(id, await redis.call("HGETALL", keys.replayPrefix + id));
  }

  /** The latest ones, newest first. */
  async latest(limit: number): Promise<BulkReplay[]> {
    const { run, keys } = this.#parts;
    const call = { keys: keys.forReplay(""), args: [limit, keys.replayPrefix] };
    const found = fieldsOf(await run("dead-letters/latest-replays", call));
    return Object.entries(found).flatMap(([id, fields]) => parseReplay(id, fields) ?? []);
  }

  /** Ids of those that run. */
  running(): Promise<string[]> {
    return this.#parts.redis.smembers(this.#parts.keys.runningReplays);
  }

  /** Advances all running replays. True if there were any. */
  async runRound(): Promise<boolean> {
    const running = await this.running();
    for (const id of running) {
      await this.#takeTurn(id);
    }
    return running.length > 0;
  }

  /**
   * Advances one replay by a step, as far as its rate allows; see dead-letters/replay-batch.lua. The outbox tasks of
   * the letters that were moved belong to the caller for `graceMs`, and then to any worker.
   */
  async runBatch(id: string, limit: number, graceMs: number): Promise<ReplayBatch> {
    const { run, keys, recordRetentionMs } = this.#parts;
    const reply = await run("dead-letters/replay-batch", {
      keys: keys.forReplay(id),
      args: [id, limit, keys.entryPrefix, graceMs, recordRetentionMs],
    });
    const [state, moved, atUs] = batchSchema.parse(reply);
    return { state: state === "" ? "unknown" : state, moved, atUs };
  }

  async #takeTurn(id: string): Promise<void> {
    const { outbox, log, isStopping } = this.#parts;
    // The queue part of one step runs while the ledger makes the next step.
    let inQueue: Promise<unknown> = Promise.resolve();
    for (let step = 0; step < STEPS_PER_TURN && !isStopping(); step += 1) {
      const [{ state, moved }] = await Promise.all([this.runBatch(id, BATCH, GRACE_MS), inQueue]);
      inQueue = outbox.run(moved);
      if (state === "completed") {
        log.info({ event: "replay_completed", replay_id: id });
      }
      if (state !== "running" || moved.length < BATCH) {
        break;
      }
    }
    await inQueue;
  }

  async #startOrCount(
    id: string,
    { filter, ratePerSecond, by }: ReplayOrder,
    mode: "" | "dry",
  ): Promise<number> {
    const { run, keys } = this.#parts;
    const details = {
      publisher: filter.publisher ?? null,
      reason: filter.reason ?? null,
      since: isoOrNull(filter.sinceMs),
      until: isoOrNull(filter.untilMs),
      rate_per_second: ratePerSecond,
    };
    const reply = await run("dead-letters/start-replay", {
      keys: keys.forReplay(id),
      args: [id, ...filterArgs(filter), ratePerSecond, by, JSON.stringify(details), keys.replayPrefix, mode],
    });
    return z.number().parse(reply);
  }
}

const batchSchema = z.tuple([z.enum([...REPLAY_STATES, ""]), z.array(outboxTaskSchema), z.number()]);

function parseReplay(id: string, reply: unknown): BulkReplay | undefined {
  const stored = fieldsOf(reply);
  return Object.keys(stored).length === 0 ? undefined : { id, ...replaySchema.parse(stored) };
}

function isoOrNull(atMs: number | undefined): string | null {
  return atMs === undefined ? null : new Date(atMs).toISOString();
}
